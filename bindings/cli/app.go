package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// Exit codes.
const (
	exitDone    = 0
	exitRefused = 1 // an error, or a proof that does not verify
	exitUsage   = 2
)

// prover is the engine as the commands use it; tests put another in its place.
type prover interface {
	Prove(ctx context.Context, request *engine.ProveRequest) (*engine.ProveResult, error)
	VerifyC1(ctx context.Context, request *engine.VerifyC1Request) (bool, error)
	Device() string
	Close() error
}

// app is one run of the command line with all that it touches of the outside.
type app struct {
	in     io.Reader
	out    io.Writer
	con    *console
	getenv func(string) string
	open   func(engine.Config) (prover, error)

	json    bool
	threads int
	memory  string
	gpuMem  string
	device  device
	level   choice
	// Interlock rule and workers.
	policy                       choice
	gpuWorkers, partitionWorkers int
}

// errAnswered ends a command whose answer, already written, is no: exit code 1 and nothing more to say.
var errAnswered = errors.New("answered")

// errorJSON is an error under --json.
type errorJSON struct {
	Kind    string `json:"kind"` // a kind of package status; "caller" for wrong usage
	Op      string `json:"op"`
	Where   string `json:"where"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Message string `json:"message"` // the whole text
	Exit    int    `json:"exit_code"`
}

// helpJSON is the help of a command under --json.
type helpJSON struct {
	Help string `json:"help"`
}

// newErrorJSON takes an error apart. The innermost Error that says where is the most telling; the kind is
// the outermost one's.
func newErrorJSON(err error, code int) *errorJSON {
	outer := asStatus(err)
	e := outer
	for e.Want == "" && e.Got == "" {
		var inner *status.Error
		if e.Cause == nil || !errors.As(e.Cause, &inner) {
			break
		}
		e = inner
	}
	return &errorJSON{outer.Kind.String(), e.Op, e.Where, e.Want, e.Got, err.Error(), code}
}

// asStatus finds the Error in a chain. What cobra finds wrong with the arguments is none: the caller's.
func asStatus(err error) *status.Error {
	var e *status.Error
	if errors.As(err, &e) {
		return e
	}
	return status.New(status.Caller, "usage", "", "", err.Error())
}

// run executes one command and returns the exit code.
func (a *app) run(ctx context.Context, args []string) (code int) {
	a.json = wantsJSON(args)
	err := a.execute(ctx, args)
	a.json = a.json || wantsJSON(args) // a bad value of --json has switched it off
	a.con.finish()
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errAnswered):
		return exitRefused
	}
	code = exitRefused
	if asStatus(err).Kind == status.Caller {
		code = exitUsage
	}
	if !a.json || a.write(newErrorJSON(err, code)) != nil {
		fmt.Fprintf(a.con.w, "sealc2: %s\n", err)
	}
	return code
}

func (a *app) execute(ctx context.Context, args []string) (err error) {
	defer status.Recover("cli", &err)
	if err := host.StartPoller("cli"); err != nil {
		return err
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.con.w)
	return root.ExecuteContext(ctx)
}

// wantsJSON looks for --json ahead of the parser: wrong usage left of it must be JSON all the same.
func wantsJSON(args []string) bool {
	before, _, _ := cut(args, "--")
	return slices.ContainsFunc(before, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--json=")
		on, err := strconv.ParseBool(value)
		return arg == "--json" || given && (on || err != nil)
	})
}

// cut splits a list around the first sep.
func cut(list []string, sep string) (before, after []string, found bool) {
	if i := slices.Index(list, sep); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return list, nil, false
}

// write puts one JSON object on stdout. What is not UTF-8, as a file's name may be, comes out with the replacement
// character.
func (a *app) write(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err != nil {
		return status.Wrap(status.Internal, "cli.Write", "stdout", err)
	}
	return a.print(append(b, '\n'))
}

// print writes to stdout, where a full disk or a closed pipe must not pass for success.
func (a *app) print(text []byte) error {
	if _, err := a.out.Write(text); err != nil {
		return fileError("cli.Write", "stdout", err)
	}
	return nil
}

// result writes what a command found: v as JSON, or text for people.
func (a *app) result(v any, text func(w io.Writer)) error {
	if a.json {
		return a.write(v)
	}
	var b bytes.Buffer
	text(&b)
	return a.print(b.Bytes())
}

// config says what the engine may use, from the flags and the environment.
func (a *app) config() (engine.Config, error) {
	config := engine.Config{
		Threads: a.threads, Device: a.device.value, Log: a.con.log, Policy: a.policy.value, DeviceWorkers: a.gpuWorkers, PartitionWorkers: a.partitionWorkers,
		GPULock: engine.GPULockFile(a.getenv(engine.EnvGPULock), a.getenv(envTemp)),
	}
	for _, workers := range []struct {
		flag  string
		count int
	}{{"--gpu-workers", a.gpuWorkers}, {"--partition-workers", a.partitionWorkers}} {
		if workers.count < 0 {
			return engine.Config{}, usage(workers.flag, "0 or more", strconv.Itoa(workers.count))
		}
	}
	if config.Threads == 0 {
		config.Threads = host.ThreadCap(a.getenv(envThreads))
	}
	if a.memory != "" {
		n, err := parseSize("--memory", a.memory)
		if err != nil {
			return engine.Config{}, err
		}
		config.HostBytes = n
	}
	if a.gpuMem != "" {
		n, err := parseSize("--device-memory", a.gpuMem)
		if err != nil {
			return engine.Config{}, err
		}
		config.DeviceBytes = n
	}
	return config, nil
}

// engine opens an engine.
func (a *app) engine() (prover, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	return a.open(config)
}

// policyFlags are the flags of commands that prove which say what may run beside what.
func (a *app) policyFlags(c *cobra.Command) {
	c.Flags().Var(&a.policy, "policy", "interlock rule, for comparing them; the default is meant for work")
	c.Flags().IntVar(&a.gpuWorkers, "gpu-workers", 0, "batches of partitions under way at once on a device (gw); 0: what the rule and the plan say")
	c.Flags().IntVar(&a.partitionWorkers, "partition-workers", 0, "host stages at once (pw); 0: two")
}

// limits is what commands may use that do without an engine.
func (a *app) limits() (host.Limits, error) {
	config, err := a.config()
	if err != nil {
		return host.Limits{}, err
	}
	return host.ThisMachine().Limits(config.Threads, config.HostBytes)
}

// fits refuses what the budget can never hold, with both numbers.
func fits(op string, limits host.Limits, bytes int64) error {
	return host.NewBudget(host.Needs{HostBytes: limits.HostBytes}).Fits(op, host.Needs{HostBytes: bytes})
}

// usage makes an error of the caller's. where is a flag, or a command's path.
func usage(where, want, got string) error {
	return status.New(status.Caller, "usage", where, want, got)
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	a.policy.legal = nil
	for _, p := range sched.Policies() {
		a.policy.legal = append(a.policy.legal, p.Name())
	}
	a.policy.value = a.policy.legal[0]
	root := group("sealc2", "Groth16 proofs for sealed Filecoin sectors",
		a.circuitCommand(), a.witnessCommand(), a.synthCommand(), a.setupCommand(), a.proveCommand(), a.verifyCommand(),
		a.serveCommand(), a.paramsCommand(), a.benchCommand(), a.versionCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(helpCommand())
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if !a.json {
			help(c, args)
			return
		}
		what := c.Long
		if what == "" {
			what = c.Short
		}
		a.write(helpJSON{what + "\n\n" + c.UsageString()})
	})
	a.device = device{"auto"}
	a.level = choice{value: "warn", legal: logLevels}
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", a.json, "write one JSON object to stdout, errors included")
	flags.IntVar(&a.threads, "threads", 0, "CPU threads; 0: RAYON_NUM_THREADS, then the affinity mask and cgroup limit")
	flags.StringVar(&a.memory, "memory", "", "host memory budget, as 16GiB; empty: the cgroup limit or the machine's memory")
	flags.StringVar(&a.gpuMem, "device-memory", "", "GPU memory budget, as 20GiB; empty: what is free when it opens, less some headroom")
	flags.Var(&a.level, "log", "log lines on stderr up to this level")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := checkFlags(c); err != nil {
			return err
		}
		if a.threads < 0 {
			return usage("--threads", "0 or more", strconv.Itoa(a.threads))
		}
		a.con.level = slices.Index(logLevels, a.level.value)
		return nil
	}
	return root
}

// helpCommand is `help COMMAND`, which refuses what is no command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			at := c.Root()
			for _, name := range args {
				i := slices.IndexFunc(at.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
				if i < 0 {
					return usage(c.CommandPath(), "a command of "+at.CommandPath(), strconv.Quote(name))
				}
				at = at.Commands()[i]
			}
			at.InitDefaultHelpFlag() // so that it is in the list
			return at.Help()
		},
	}
}

// group makes a command that only holds others; anything else below it is refused with the list of them.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs}
	c.AddCommand(commands...)
	names := make([]string, len(commands))
	for i, sub := range commands {
		names[i] = sub.Name()
	}
	legal := strings.Join(names, ", ")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c.CommandPath(), "a command: "+legal, "none")
		}
		return usage(c.CommandPath(), "one of "+legal, strconv.Quote(args[0]))
	}
	return c
}

// flagError says what is wrong with a flag, and what would be right.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return usage(c.CommandPath(), "one of "+strings.Join(names, ", "), err.Error())
	case errors.As(err, &invalid):
		want := invalid.Unwrap().Error()
		var number *strconv.NumError
		if errors.As(err, &number) {
			want = "a value of type " + invalid.GetFlag().Value.Type()
			if errors.Is(err, strconv.ErrRange) {
				want += " in its range"
			}
		}
		return usage("--"+invalid.GetFlag().Name, want, strconv.Quote(invalid.GetValue()))
	}
	return usage(c.CommandPath(), "", err.Error())
}

// Annotations of flags: mandatory, and the list that must be given with it.
const (
	mandatory = "sealc2_mandatory"
	partners  = "sealc2_partners"
)

// annotate puts a note on a flag, which must exist.
func annotate(c *cobra.Command, flag, key string, values []string) {
	err := c.Flags().SetAnnotation(flag, key, values)
	status.Check(err == nil, "cli", "flag --"+flag+" exists")
}

// require marks a command's flags as mandatory.
func require(c *cobra.Command, flags ...string) {
	for _, f := range flags {
		annotate(c, f, mandatory, flags)
	}
}

// together marks flags of which all are given or none.
func together(c *cobra.Command, flags ...string) {
	for _, f := range flags {
		annotate(c, f, partners, flags)
	}
}

// checkFlags holds a command to what require and together said.
func checkFlags(c *cobra.Command) error {
	var missing []string
	var err error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[mandatory] != nil && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
		if group := f.Annotations[partners]; err == nil && f.Changed {
			for _, name := range group {
				if !c.Flags().Changed(name) {
					err = usage(c.CommandPath(), fmt.Sprintf("--%s with --%s", name, f.Name), "none")
				}
			}
		}
	})
	if len(missing) > 0 {
		return usage(c.CommandPath(), strings.Join(missing, " and "), "none")
	}
	return err
}

// noArguments refuses what stands beside the flags.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(c.CommandPath(), "flags only", strconv.Quote(args[0]))
	}
	return nil
}

// parseSize reads --memory: a number of bytes with an optional unit.
func parseSize(flag, text string) (int64, error) {
	units := []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 || n > (1<<62)/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, usage(flag, "a number of bytes, with KiB, MiB, GiB, TiB or nothing after it", strconv.Quote(text))
}
