package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// A logFile is a container's output in the format that kubelets read: a time, the
// stream, whether the line is whole, and the line.
type logFile struct {
	mu   sync.Mutex
	file *os.File
}

func createLog(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &logFile{file: file}, nil
}

// copy writes what comes from a stream until it ends.
func (l *logFile) copy(stream string, from io.Reader) {
	reader := bufio.NewReaderSize(from, 16*1024)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			tag := "F"
			if line[len(line)-1] != '\n' && errors.Is(err, bufio.ErrBufferFull) {
				tag = "P" // The rest of the line follows.
			}
			l.write(time.Now(), stream, tag, line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (l *logFile) write(now time.Time, stream, tag string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A full disk must not stop the container.
	_, _ = fmt.Fprintf(l.file, "%s %s %s %s\n", now.UTC().Format(time.RFC3339Nano), stream, tag, strings.TrimSuffix(string(line), "\n"))
}

func (l *logFile) close() { _ = l.file.Close() }

// containerLogs serves kubectl logs.
func (n *Node) containerLogs(ctx context.Context, namespace, pod, name string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	w := n.find(namespace, pod)
	if w == nil {
		return nil, errdefs.NotFoundf("pod %s/%s is not on this node", namespace, pod)
	}
	c := w.container(name)
	if c == nil {
		return nil, errdefs.NotFoundf("pod %s/%s has no container %s", namespace, pod, name)
	}
	path, id, err := c.logOf(opts.Previous)
	if err != nil {
		return nil, errdefs.AsInvalidInput(err)
	}
	since := opts.SinceTime
	if opts.SinceSeconds > 0 {
		since = time.Now().Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	options := &logs.LogOptions{Follow: opts.Follow, Timestamp: opts.Timestamps, Since: since}
	if opts.Tail > 0 {
		tail := int64(opts.Tail)
		options.TailLines = &tail
	}
	if opts.LimitBytes > 0 {
		limit := int64(opts.LimitBytes)
		options.LimitBytes = &limit
	}
	reader, writer := io.Pipe()
	go func() {
		err := logs.ReadLogs(ctx, path, id, options, runtimeStates{container: c}, writer, writer)
		_ = writer.CloseWithError(err) // It always returns nil.
	}()
	return reader, nil
}

// runtimeStates is as much of a container runtime as following a log asks for.
type runtimeStates struct {
	cri.RuntimeService
	container *container
}

func (r runtimeStates) ContainerStatus(_ context.Context, id string, _ bool) (*criv1.ContainerStatusResponse, error) {
	state := criv1.ContainerState_CONTAINER_EXITED
	if r.container.isRunning(id) {
		state = criv1.ContainerState_CONTAINER_RUNNING
	}
	return &criv1.ContainerStatusResponse{Status: &criv1.ContainerStatus{Id: id, State: state}}, nil
}

// terminationMessage is what a container left to say: its message file, or the
// end of its log if the pod asks for that and the container failed.
func terminationMessage(spec *corev1.Container, messageFile, logPath string, failed bool) string {
	const limit, logLimit, logLines = 4096, 2048, 80
	message, err := os.ReadFile(messageFile)
	if err == nil && len(message) > 0 {
		return string(message[max(0, len(message)-limit):])
	}
	if !failed || spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var text strings.Builder
	tail := int64(logLines)
	if err := logs.ReadLogs(context.Background(), logPath, "", &logs.LogOptions{TailLines: &tail}, runtimeStates{}, &text, &text); err != nil {
		return err.Error()
	}
	return text.String()[max(0, text.Len()-logLimit):]
}
