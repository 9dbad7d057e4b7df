package modelstub

// This file is Anthropic's Messages API, as far as Claude Code asks for it.

import (
	"encoding/json"
	"net/http"
)

// anthropic adds the API's paths.
func (s *Server) anthropic(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		if s.take(w, r, false) != nil {
			writeJSON(w, http.StatusOK, map[string]any{"input_tokens": 1})
		}
	})
	mux.HandleFunc("HEAD /{$}", func(w http.ResponseWriter, r *http.Request) { s.take(w, r, false) })
}

// messagesRequest is what the server reads of a request.
type messagesRequest struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	Tools  []json.RawMessage `json:"tools"`
}

// messages answers a request for a message.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	e := s.take(w, r, true)
	if e == nil {
		return
	}
	var asked messagesRequest
	if err := json.Unmarshal(e.Body, &asked); err != nil {
		refuseAnthropic(w, Refusal{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	if e.over {
		refuseAnthropic(w, Refusal{Status: http.StatusBadRequest, Message: "the script of this stand-in is at its end"})
		return
	}
	if e.step.Refusal != nil {
		for name, value := range e.step.Header {
			w.Header().Set(name, value)
		}
		refuseAnthropic(w, *e.step.Refusal)
		return
	}
	s.message(begin(w, r, e.step), asked)
}

// message streams an answer.
func (s *Server) message(t *stream, asked messagesRequest) {
	model := asked.Model
	if t.step.Model != "" {
		model = t.step.Model
	}
	type object = map[string]any
	used := t.step.Usage
	t.event("message_start", object{"type": "message_start", "message": object{
		"id": s.newID("msg_stub"), "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		// The API tells what was read at the start, and of what is written only what is already there.
		"usage": object{
			"input_tokens": used.Input, "cache_read_input_tokens": used.CacheRead, "cache_creation_input_tokens": used.CacheCreation,
			"output_tokens": min(1, used.Output),
		},
	}})
	index := 0
	block := func(start object, fill func(delta func(object))) {
		t.event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start})
		fill(func(delta object) {
			t.event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": delta})
		})
		t.event("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	if t.step.Thinking != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) {
			t.pieces(t.step.Thinking, false, func(piece string) { delta(object{"type": "thinking_delta", "thinking": piece}) })
			delta(object{"type": "signature_delta", "signature": "c2lnbmVkIGJ5IHRoZSBzdHVi"})
		})
	}
	if t.step.Text != "" {
		block(object{"type": "text", "text": ""}, func(delta func(object)) {
			t.pieces(t.step.Text, true, func(piece string) { delta(object{"type": "text_delta", "text": piece}) })
		})
	}
	stop := "end_turn"
	for _, call := range t.step.Tools {
		stop = "tool_use"
		if call.ID == "" {
			call.ID = s.newID("toolu_stub")
		}
		block(object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}}, func(delta func(object)) {
			t.pieces(string(call.Input), false, func(piece string) {
				delta(object{"type": "input_json_delta", "partial_json": piece})
			})
		})
	}
	t.halt()
	for _, e := range t.step.Raw {
		t.raw(e)
	}
	t.event("message_delta", object{
		"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{
			"input_tokens": used.Input, "cache_read_input_tokens": used.CacheRead, "cache_creation_input_tokens": used.CacheCreation,
			"output_tokens": used.Output,
		},
	})
	t.event("message_stop", object{"type": "message_stop"})
}

// anthropicTypes are the types of the API's errors by their status.
var anthropicTypes = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
}

// refuseAnthropic answers with the API's error object.
func refuseAnthropic(w http.ResponseWriter, refusal Refusal) {
	if refusal.Body != "" {
		w.WriteHeader(refusal.Status)
		_, _ = w.Write([]byte(refusal.Body)) // the client is gone
		return
	}
	kind := refusal.Type
	if kind == "" {
		kind = anthropicTypes[refusal.Status]
	}
	if kind == "" {
		kind = "api_error"
	}
	writeJSON(w, refusal.Status, map[string]any{
		"type": "error", "error": map[string]any{"type": kind, "message": refusal.Message},
	})
}

// writeJSON answers with an object.
func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := encode(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client is gone
}
