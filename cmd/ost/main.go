// Command ost is what programs in an agent's pod speak to their team with. docs/ost.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/bullpen-dev/bullpen/agentpod/ost"
)

// version is set by the linker; without that, it is the module's.
var version string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return ost.Main(ctx, os.Args[1:], ost.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv, versionOf())
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
