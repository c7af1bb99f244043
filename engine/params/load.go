package params

import (
	"context"
	"fmt"

	"github.com/sealc2/sealc2/engine/status"
)

// Policy says which keys are accepted.
type Policy struct {
	AllowDev         bool      // accept keys that are not in the public manifest
	VerifyProduction bool      // hash the whole .params file against the manifest; refuses every other key
	Verdicts         *Verdicts // remembers files that were hashed; nil hashes each time
	// Log receives a warning on each use of a key that is not in the manifest; nil drops it.
	Log func(level, text string)
}

// Load opens a set for proving: the .params file, its .vk file with the same key, and the guard.
// Errors are of kind Params (or Cancelled while hashing).
func Load(ctx context.Context, set Set, policy Policy) (*File, error) {
	f, err := Open(set.Params)
	if err != nil {
		return nil, err
	}
	if err := admitFile(ctx, f, set, policy); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func admitFile(ctx context.Context, f *File, set Set, policy Policy) error {
	if err := set.complete("params.Load", true); err != nil {
		return err
	}
	key, err := ReadKeyFile(set.VK)
	if err != nil {
		return err
	}
	if err := f.SameKey(key.Bytes, set.VK); err != nil {
		return err
	}
	entry, production, err := Admit(f.KeyBytes(), set.Params, set.Base, policy)
	if err != nil || !policy.VerifyProduction {
		return err
	}
	status.Check(production, "params.Load", "a key from the manifest")
	return f.VerifyProduction(ctx, entry, policy.Verdicts)
}

// Admit is the guard: it looks a key's bytes up in the public manifest by content. A key that is there must
// belong to the circuit base, where that is known; one that is not there needs policy's leave and is logged
// on each use, since whoever made it can forge proofs. path is for text.
func Admit(vkBytes []byte, path, base string, policy Policy) (entry Entry, production bool, err error) {
	const op = "params.Admit"
	where := path + ": verifying key"
	entry, production = LookUpKey(vkBytes)
	digest := KeyDigest(vkBytes)
	switch {
	case production && base != "" && base != entry.Base:
		return Entry{}, false, status.New(status.Params, op, where, "the key of "+base, fmt.Sprintf("the production key of %s (digest %s)", entry.Base, digest))
	case production:
		return entry, true, nil
	case policy.VerifyProduction:
		return Entry{}, false, status.New(status.Params, op, where, "a key of the public manifest, as verification of production parameters asks for", "digest "+digest)
	case !policy.AllowDev:
		return Entry{}, false, status.New(status.Params, op, where, "a key of the public manifest, or leave to use development parameters (SEALC2_ALLOW_DEV_PARAMS=1)", "digest "+digest)
	}
	if policy.Log != nil {
		policy.Log("warn", fmt.Sprintf("%s: digest %s is not in the public manifest: development parameters, proofs under this key prove nothing", where, digest))
	}
	return Entry{}, false, nil
}
