package agent

// This file makes the checks that only the agent's own container can make.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// serviceWait is how long a service may take to answer.
const serviceWait = 3 * time.Second

// examine makes the checks of a person's declared tools and services, and of the home.
func examine(ctx context.Context, p protocol.TeamPerson, homeDir string) []protocol.DoctorCheck {
	var checks []protocol.DoctorCheck
	if len(p.Tools) > 0 {
		checks = append(checks, checkTools(p.Tools))
	}
	if len(p.Services) > 0 {
		checks = append(checks, checkServices(ctx, p.Services))
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(homeDir, &fs); err != nil {
		return append(checks, protocol.DoctorCheck{
			Name: "Home has room", Status: protocol.CheckFail, Detail: "The home cannot be read: " + err.Error(),
			Fix: "Look at the person's volume claim.",
		})
	}
	block := uint64(max(fs.Bsize, 1))
	return append(checks, checkRoom(fs.Bavail*block, fs.Blocks*block))
}

func checkTools(tools []string) protocol.DoctorCheck {
	var missing []string
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	check := protocol.DoctorCheck{
		Name: "Tools install", Status: protocol.CheckOK, Detail: "In PATH: " + strings.Join(tools, ", ") + ".",
	}
	if len(missing) > 0 {
		check.Status = protocol.CheckFail
		check.Detail = "Not in PATH: " + strings.Join(missing, ", ") + "."
		check.Fix = "Add them to the agent's image, or take them from the person's tools."
	}
	return check
}

func checkServices(ctx context.Context, services []protocol.TeamService) protocol.DoctorCheck {
	ctx, cancel := context.WithTimeout(ctx, serviceWait)
	defer cancel()
	troubles := make([]error, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
			if err != nil {
				troubles[i] = fmt.Errorf("%s: %w", s.Name, err)
				return
			}
			_ = conn.Close()
		})
	}
	all.Wait()
	check := protocol.DoctorCheck{
		Name: "Services answer", Status: protocol.CheckOK, Detail: fmt.Sprintf("All %d take connections.", len(services)),
	}
	if err := errors.Join(troubles...); err != nil {
		check.Status = protocol.CheckFail
		check.Detail = strings.ReplaceAll(err.Error(), "\n", "; ")
		check.Fix = "Check the address, that the service runs, and the network policy."
	}
	return check
}

// checkRoom looks at the bytes that are free of all that the home's volume has.
func checkRoom(free, total uint64) protocol.DoctorCheck {
	const mega = 1 << 20
	check := protocol.DoctorCheck{
		Name: "Home has room", Status: protocol.CheckOK,
		Detail: fmt.Sprintf("%d of %d MiB are free.", free/mega, total/mega),
	}
	switch {
	case free < 100*mega || free < total/100:
		check.Status = protocol.CheckFail
	case free < total/10:
		check.Status = protocol.CheckWarn
	}
	if check.Status != protocol.CheckOK {
		check.Fix = "Give the home a larger size, or remove what is not needed."
	}
	return check
}

// checkDoor says that programs cannot speak to the agent, if they cannot.
func checkDoor(problem string) []protocol.DoctorCheck {
	if problem == "" {
		return nil
	}
	return []protocol.DoctorCheck{{
		Name: "Socket opens", Status: protocol.CheckFail, Detail: "Programs cannot use ost: " + problem,
		Fix: "Give the agent a home or a TMPDIR whose file system takes unix sockets and whose path is short.",
	}}
}

// unfitBecause returns why offers should be declined, judging by the runtime's own checks.
func unfitBecause(checks []protocol.DoctorCheck) string {
	for _, c := range checks {
		if c.Status == protocol.CheckFail {
			return c.Name + ": " + c.Detail
		}
	}
	return ""
}
