package agent

// This file is the agent's door for the programs of its pod: HTTP over a unix socket that only the agent's own user can open.
//
//	POST   /v1/messages/{type}   sends a message of the protocol, its payload the body
//	GET    /v1/reports           the reports that the office waits for
//	GET    /v1/notes             the person's notes
//	POST   /v1/notes             adds one
//	PUT    /v1/notes/{id}        changes one
//	DELETE /v1/notes/{id}        removes one
//
// An office's answer is {"type": …, "payload": …} with status 200, also when it is a refusal. {"queued": true} with status
// 202 says that the message is on disk and will be delivered. Any other status is the agent's own, with an error of the
// protocol's form. docs/ost.md describes it for users; ost is the client.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxSocketPath is the most bytes that the path of a unix socket may have on Linux.
	maxSocketPath = 107
	// maxBody is the most bytes of a payload; with its envelope it has to fit a frame.
	maxBody = protocol.MaxFrame - 4<<10
	// maxPrograms is how many requests may be under way at once.
	maxPrograms = 32
	socketName  = "ost.sock"
)

var tooLarge = trouble(http.StatusRequestEntityTooLarge, protocol.CodeMalformed, "the payload may have at most %d bytes", maxBody)

// door is the open socket.
type door struct {
	path   string
	server *http.Server
	ended  chan struct{}
}

// socketPlaces returns where the socket may be, best first: in the home, or where its path would be too long or its file
// system takes no sockets, in the folder for what need not last. There the name tells homes apart.
func socketPlaces(root, tmp string) []string {
	sum := sha256.Sum256([]byte(root))
	places := []string{
		filepath.Join(root, "run", socketName),
		filepath.Join(tmp, "bullpen-"+hex.EncodeToString(sum[:6]), socketName),
	}
	return slices.DeleteFunc(places, func(path string) bool { return len(path) > maxSocketPath })
}

// openDoor opens the socket and serves it. The caller holds the home's lock, so a socket that is there is that of an agent
// that was killed.
func openDoor(root, tmp string, handler http.Handler, log *slog.Logger) (*door, error) {
	places := socketPlaces(root, tmp)
	if len(places) == 0 {
		return nil, fmt.Errorf("the path of a unix socket may have %d bytes; those in the home %s and in %s %s would have more: "+
			"give the agent a home or a %s with a shorter path", maxSocketPath, root, contract.EnvTmp, tmp, contract.EnvTmp)
	}
	var troubles []error
	for _, path := range places {
		listener, err := listenAt(path)
		if err != nil {
			troubles = append(troubles, err)
			continue
		}
		d := &door{path: path, ended: make(chan struct{}), server: &http.Server{
			Handler:           limit(handler, maxPrograms),
			ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
			MaxHeaderBytes: 16 << 10,
			ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}}
		go func() {
			defer close(d.ended)
			_ = d.server.Serve(listener) // it ends with close
		}()
		return d, nil
	}
	return nil, errors.Join(troubles...)
}

// listenAt listens on a socket that only this user can open: its folder is closed to others before it is there.
func listenAt(path string) (net.Listener, error) {
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := disk.Remove(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// privateDir makes a folder that is ours alone. One that another user made before us is refused.
func privateDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder of this user", path)
	}
	return os.Chmod(path, 0o700)
}

// close ends the service after the answers that are under way, and removes the socket.
func (d *door) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		_ = d.server.Close()
	}
	<-d.ended
	_ = os.Remove(filepath.Dir(d.path)) // the socket is gone, so it is empty
}

// limit refuses what comes while too much is under way.
func limit(handler http.Handler, most int) http.Handler {
	slots := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			handler.ServeHTTP(w, r)
		default:
			write(w, trouble(http.StatusTooManyRequests, protocol.CodeFailed,
				"%d requests are under way already; nothing was sent, try again later", most))
		}
	})
}

// handler serves the programs.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages/{type}", func(w http.ResponseWriter, r *http.Request) {
		body, bad := readBody(w, r)
		if bad != nil {
			write(w, *bad)
			return
		}
		m, bad := readMessage(protocol.Type(r.PathValue("type")), body)
		if bad != nil {
			write(w, *bad)
			return
		}
		write(w, a.submit(m))
	})
	mux.HandleFunc("GET /v1/reports", func(w http.ResponseWriter, _ *http.Request) {
		write(w, a.await(func(reply chan<- outcome) {
			reply <- result(protocol.TypeReports, protocol.Reports{Reports: a.openReports()})
		}))
	})
	mux.HandleFunc("GET /v1/notes", func(w http.ResponseWriter, _ *http.Request) {
		write(w, a.await(func(reply chan<- outcome) { reply <- result("", a.notes) }))
	})
	mux.HandleFunc("POST /v1/notes", a.changeNotes(func(b notebook, _ int, text string) (notebook, note, error) {
		return b.add(text, time.Now())
	}))
	mux.HandleFunc("PUT /v1/notes/{id}", a.changeNotes(func(b notebook, id int, text string) (notebook, note, error) {
		return b.update(id, text, time.Now())
	}))
	mux.HandleFunc("DELETE /v1/notes/{id}", a.changeNotes(func(b notebook, id int, _ string) (notebook, note, error) {
		return b.remove(id)
	}))
	return mux
}

// noteRequest is the body of a change of the notes.
type noteRequest struct {
	Text string `json:"text"`
	// WorkItemID is the item that the caller works on, if any.
	WorkItemID string `json:"workItemId"`
}

// changeNotes serves one kind of change.
func (a *Agent) changeNotes(change func(b notebook, id int, text string) (notebook, note, error)) http.HandlerFunc {
	kind := map[string]protocol.NoteChange{
		http.MethodPost: protocol.NoteAdded, http.MethodPut: protocol.NoteUpdated, http.MethodDelete: protocol.NoteRemoved,
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, bad := readBody(w, r)
		if bad != nil {
			write(w, *bad)
			return
		}
		var req noteRequest
		if err := json.Unmarshal(body, &req); err != nil {
			write(w, trouble(http.StatusBadRequest, protocol.CodeMalformed, "the body is no such JSON: %v", err))
			return
		}
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil && r.Method != http.MethodPost {
			write(w, trouble(http.StatusNotFound, protocol.CodeNotFound, "notes are named by their number"))
			return
		}
		write(w, a.await(func(reply chan<- outcome) {
			a.onNotes(kind[r.Method], req.WorkItemID, &waiter{reply: reply}, func(b notebook) (notebook, note, error) {
				return change(b, id, strings.TrimSpace(req.Text))
			})
		}))
	}
}

// result is the outcome of what the agent answers by itself.
func result(t protocol.Type, v any) outcome {
	payload, err := json.Marshal(v)
	if err != nil {
		return trouble(http.StatusInternalServerError, protocol.CodeFailed, "the answer has no JSON form: %v", err)
	}
	return outcome{status: http.StatusOK, Type: t, Payload: payload}
}

// readBody reads a request's body; none is an empty object.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *outcome) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &tooLarge
	case err != nil:
		bad := trouble(http.StatusBadRequest, protocol.CodeMalformed, "the body cannot be read: %v", err)
		return nil, &bad
	case len(bytes.TrimSpace(body)) == 0:
		return []byte("{}"), nil
	}
	return body, nil
}

// readMessage reads the payload of a message that programs may send, as strictly as the office will.
func readMessage(t protocol.Type, payload []byte) (protocol.Message, *outcome) {
	refuse := func(status int, code protocol.Code, format string, args ...any) (protocol.Message, *outcome) {
		bad := trouble(status, code, format, args...)
		return nil, &bad
	}
	if _, known := protocol.SpecOf(t); !known {
		return refuse(http.StatusNotFound, protocol.CodeUnknownType, "the protocol has no message of this type")
	}
	if _, allowed := routes[t]; !allowed {
		return refuse(http.StatusForbidden, protocol.CodeUnsupported, "%s is not for programs to send: the agent does it itself", t)
	}
	// One that is not JSON by itself could end the payload and go on in the envelope. Of JSON, Decode says more.
	if !jsontext.Value(payload).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return refuse(http.StatusBadRequest, protocol.CodeMalformed, "the payload is not JSON")
	}
	frame, werr := protocol.Decode(slices.Concat([]byte(`{"id":"-","type":"`), []byte(t), []byte(`","payload":`), payload, []byte("}")))
	if werr != nil {
		return refuse(http.StatusBadRequest, werr.Code, "%s", werr.Message)
	}
	return frame.Message, nil
}

// write answers a request.
func write(w http.ResponseWriter, out outcome) {
	data, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(out.status)
	_, _ = w.Write(data)
}
