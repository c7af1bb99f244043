package params

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine/status"
)

// Verdicts remembers which states of which files passed a check, so that hours of work are not repeated:
// in memory, and below a directory where one is given and can be written. Only good verdicts are kept. The
// directory must belong to the user, since whoever writes there can declare a file good. A nil *Verdicts
// remembers nothing. Safe for concurrent use; two callers with the same question wait for one answer.
type Verdicts struct {
	dir  string
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]*verdict
}

type verdict struct {
	turn chan struct{} // holds one token: the right to look and to work
	good bool
}

// NewVerdicts keeps verdicts below dir, as $XDG_CACHE_HOME/sealc2; "" keeps them in memory only.
func NewVerdicts(dir string) *Verdicts {
	return &Verdicts{dir: dir, now: time.Now, seen: make(map[string]*verdict)}
}

type persistence bool

const (
	keepInMemory persistence = false
	keepOnDisk   persistence = true
)

// settleTime is how old a file's last change must be before a verdict is kept: within one tick of the file
// system's clock a later change would leave the same times. Network file systems count in seconds.
const settleTime = 2 * time.Second

// once runs work unless it has already succeeded for this question and this state of the file. cached says
// that it had.
func (v *Verdicts) once(ctx context.Context, question string, id Identity, keep persistence, work func() error) (cached bool, err error) {
	if v == nil {
		return false, work()
	}
	key := question + "\n" + id.String()
	v.mu.Lock()
	e := v.seen[key]
	if e == nil {
		e = &verdict{turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		v.seen[key] = e
	}
	v.mu.Unlock()
	select {
	case <-e.turn:
	case <-ctx.Done():
		return false, status.Wrap(status.Cancelled, "params.Verdicts", "", ctx.Err())
	}
	defer func() { e.turn <- struct{}{} }()
	if e.good || bool(keep) && v.load(key) {
		e.good = true
		return true, nil
	}
	if err := work(); err != nil {
		return false, err
	}
	changed := time.Unix(0, max(id.MtimeNs, id.CtimeNs))
	if v.now().Sub(changed) >= settleTime {
		e.good = true
		if keep {
			v.store(key)
		}
	}
	return false, nil
}

// verdictFile is the form on disk. The key is held in full, so that no hash is trusted.
type verdictFile struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
}

const verdictVersion = 1

func (v *Verdicts) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(v.dir, "params-checks", hex.EncodeToString(sum[:16])+".json")
}

// load tells whether a verdict lies on disk. Whatever cannot be read counts as none.
func (v *Verdicts) load(key string) bool {
	if v.dir == "" {
		return false
	}
	file, _, err := openRegular("params.Verdicts", v.file(key)) // anything may lie there, a pipe too
	if err != nil {
		return false
	}
	defer file.Close()
	data := make([]byte, 4096) // a verdict has some 200 bytes
	n, _ := file.Read(data)
	return goodVerdict(data[:n], key)
}

func goodVerdict(data []byte, key string) bool {
	var f verdictFile
	return json.Unmarshal(data, &f) == nil && f.Version == verdictVersion && f.Key == key
}

// store writes a verdict in one step. A directory that cannot be written costs a check in the next process
// and nothing else, so its errors are dropped.
func (v *Verdicts) store(key string) {
	if v.dir == "" {
		return
	}
	path := v.file(key)
	data, err := json.Marshal(verdictFile{verdictVersion, key})
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".verdict-*")
	if err != nil {
		return
	}
	_, err = temp.Write(data)
	if cerr := temp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
}
