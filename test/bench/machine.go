package main

// This file describes the machine and the code that the figures are of.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// machine is where and of what figures are.
type machine struct {
	CPU    string
	Cores  int
	Memory string
	Kernel string
	Disk   string
	Go     string
	Commit string
}

// describe reads it from the system; what cannot be read is unknown.
func describe(root string) machine {
	return machine{
		CPU:    field("/proc/cpuinfo", "model name"),
		Cores:  runtime.NumCPU(),
		Memory: memory(),
		Kernel: strings.TrimSpace(runtime.GOOS + " " + contents("/proc/sys/kernel/osrelease")),
		Disk:   fileSystem(os.TempDir()),
		Go:     strings.TrimPrefix(runtime.Version(), "go") + " " + runtime.GOARCH,
		Commit: commit(root),
	}
}

func contents(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// field finds a "name : value" line.
func field(path, name string) string {
	for l := range strings.Lines(contents(path)) {
		key, value, found := strings.Cut(l, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	var kib float64
	if _, err := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%f kB", &kib); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", kib/(1<<20))
}

// fileSystem is the type of the file system that a folder is on: the one whose mount point is the longest.
func fileSystem(dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "unknown"
	}
	kind, longest := "unknown", 0
	for l := range strings.Lines(contents("/proc/self/mounts")) {
		fields := strings.Fields(l)
		if len(fields) < 3 {
			continue
		}
		at := strings.TrimSuffix(fields[1], "/") + "/"
		if strings.HasPrefix(dir+"/", at) && len(at) >= longest {
			kind, longest = fields[2], len(at)
		}
	}
	return kind
}

func commit(root string) string {
	git := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--match", "v*")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// loadAverage is how many processes wanted to run in the last minute.
func loadAverage() string {
	one, _, _ := strings.Cut(contents("/proc/loadavg"), " ")
	return one
}
