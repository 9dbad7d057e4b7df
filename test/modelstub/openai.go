package modelstub

// This file is OpenAI's Responses API, as far as Codex asks for it: an answer is a stream of events, each with its type in its data.
//
// A step's Thinking is the readable summary of the model's reasoning; a line of --- begins a new section of it.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// openai adds the API's paths.
func (s *Server) openai(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/responses", s.responses)
}

// responsesRequest is what the server reads of a request.
type responsesRequest struct {
	Model string         `json:"model"`
	Tools []declaredTool `json:"tools"`
	// Some models get their tools as the first item of the input.
	Input []struct {
		Tools []declaredTool `json:"tools"`
	} `json:"input"`
}

// declaredTool is a tool that the model may call. One of type namespace has others in it.
type declaredTool struct {
	Type  string         `json:"type"`
	Name  string         `json:"name"`
	Tools []declaredTool `json:"tools"`
}

// responses answers a request for a response.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	e := s.take(w, r, true)
	if e == nil {
		return
	}
	var asked responsesRequest
	if err := json.Unmarshal(e.Body, &asked); err != nil {
		refuseOpenAI(w, Refusal{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	if e.over {
		refuseOpenAI(w, Refusal{Status: http.StatusBadRequest, Message: "the script of this stand-in is at its end"})
		return
	}
	if e.step.Refusal != nil {
		for name, value := range e.step.Header {
			w.Header().Set(name, value)
		}
		refuseOpenAI(w, *e.step.Refusal)
		return
	}
	calls, err := s.calls(e.step.Tools, asked)
	if err != nil {
		refuseOpenAI(w, Refusal{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	s.response(begin(w, r, e.step), asked.Model, calls)
}

// object is a JSON object of an event.
type object = map[string]any

// answer is a response while it is streamed.
type answer struct {
	*stream
	id    string
	items int
}

// event sends an event of the API.
func (a *answer) event(name string, fields object) {
	fields["type"] = name
	a.stream.event(name, fields)
}

// item sends an item of the response: first without what fill streams, then whole.
func (a *answer) item(empty, whole object, fill func(at object)) {
	at := object{"item_id": empty["id"], "output_index": a.items}
	a.event("response.output_item.added", object{"output_index": a.items, "item": empty})
	fill(at)
	a.event("response.output_item.done", object{"output_index": a.items, "item": whole})
	a.items++
}

// with adds fields to a copy of an object.
func with(o object, more object) object {
	all := object{}
	for _, part := range []object{o, more} {
		for name, value := range part {
			all[name] = value
		}
	}
	return all
}

// response streams an answer.
func (s *Server) response(t *stream, model string, calls []object) {
	if t.step.Model != "" {
		model = t.step.Model
	}
	a := &answer{stream: t, id: s.newID("resp_stub")}
	a.event("response.created", object{"response": object{"id": a.id, "object": "response", "status": "in_progress", "model": model}})
	if t.step.Thinking != "" {
		s.reasoning(a)
	}
	if t.step.Text != "" {
		s.text(a)
	}
	for _, call := range calls {
		a.item(call, call, func(object) {})
	}
	t.halt()
	for _, e := range t.step.Raw {
		t.raw(e)
	}
	used := t.step.Usage
	input := used.Input + used.CacheRead + used.CacheCreation // this API's input has the other two in it
	a.event("response.completed", object{"response": object{
		"id": a.id, "object": "response", "status": "completed", "model": model,
		"usage": object{
			"input_tokens":          input,
			"input_tokens_details":  object{"cached_tokens": used.CacheRead, "cache_write_tokens": used.CacheCreation},
			"output_tokens":         used.Output,
			"output_tokens_details": object{"reasoning_tokens": used.Reasoning},
			"total_tokens":          input + used.Output,
		},
	}})
}

// sectionLine begins a new section of a step's Thinking.
const sectionLine = "\n---\n"

// reasoning streams the readable summary of what the model thinks.
func (s *Server) reasoning(a *answer) {
	sections := strings.Split(a.step.Thinking, sectionLine)
	var summary []object
	for _, section := range sections {
		summary = append(summary, object{"type": "summary_text", "text": section})
	}
	empty := object{"type": "reasoning", "id": s.newID("rs_stub"), "summary": []object{}}
	a.item(empty, with(empty, object{"summary": summary, "encrypted_content": "c2VhbGVk"}), func(at object) {
		for i, section := range sections {
			here := with(at, object{"summary_index": i})
			a.event("response.reasoning_summary_part.added", with(here, object{"part": object{"type": "summary_text", "text": ""}}))
			a.pieces(section, false, func(piece string) {
				a.event("response.reasoning_summary_text.delta", with(here, object{"delta": piece}))
			})
			a.event("response.reasoning_summary_text.done", with(here, object{"text": section}))
		}
	})
}

// text streams what the model says.
func (s *Server) text(a *answer) {
	empty := object{"type": "message", "id": s.newID("msg_stub"), "role": "assistant", "status": "in_progress", "content": []object{}}
	content := []object{{"type": "output_text", "text": a.step.Text, "annotations": []object{}}}
	a.item(empty, with(empty, object{"status": "completed", "content": content}), func(at object) {
		here := with(at, object{"content_index": 0})
		a.pieces(a.step.Text, true, func(piece string) {
			a.event("response.output_text.delta", with(here, object{"delta": piece}))
		})
		a.event("response.output_text.done", with(here, object{"text": a.step.Text}))
	})
}

// calls are a step's calls of tools in the form in which the request declares these. It is an error if it does not.
func (s *Server) calls(tools []ToolCall, asked responsesRequest) ([]object, error) {
	declared := asked.Tools
	for _, item := range asked.Input {
		declared = append(declared, item.Tools...)
	}
	var list []object
	for _, call := range tools {
		tool, namespace, ok := find(declared, call.Name)
		if !ok {
			return nil, fmt.Errorf("the script calls the tool %s, which the request does not declare; it has %s", call.Name, names(declared))
		}
		if call.ID == "" {
			call.ID = s.newID("call_stub")
		}
		made := object{"id": s.newID("item_stub"), "call_id": call.ID, "name": call.Name, "status": "completed"}
		if namespace != "" {
			made["namespace"] = namespace
		}
		if tool.Type == "custom" {
			var text string
			if err := json.Unmarshal(call.Input, &text); err != nil {
				return nil, fmt.Errorf("the tool %s takes free text, so its input must be a JSON string: %w", call.Name, err)
			}
			made["type"], made["input"] = "custom_tool_call", text
		} else {
			made["type"], made["arguments"] = "function_call", string(call.Input)
		}
		list = append(list, made)
	}
	return list, nil
}

// find looks for a tool, also in namespaces.
func find(tools []declaredTool, name string) (tool declaredTool, namespace string, ok bool) {
	for _, t := range tools {
		if t.Type != "namespace" && t.Name == name {
			return t, "", true
		}
	}
	for _, space := range tools {
		for _, t := range space.Tools {
			if t.Name == name {
				return t, space.Name, true
			}
		}
	}
	return declaredTool{}, "", false
}

// names lists tools for people.
func names(tools []declaredTool) string {
	var list []string
	for _, t := range tools {
		if t.Type != "namespace" {
			list = append(list, t.Name)
		}
		for _, inner := range t.Tools {
			list = append(list, t.Name+"."+inner.Name)
		}
	}
	return strings.Join(list, ", ")
}

// openAITypes are the types of the API's errors by their status.
var openAITypes = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "invalid_request_error",
	http.StatusNotFound: "invalid_request_error", http.StatusTooManyRequests: "rate_limit_exceeded",
}

// refuseOpenAI answers with the API's error object. Its type is its code too.
func refuseOpenAI(w http.ResponseWriter, refusal Refusal) {
	if refusal.Body != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(refusal.Status)
		_, _ = w.Write([]byte(refusal.Body)) // the client is gone
		return
	}
	kind := refusal.Type
	if kind == "" {
		kind = openAITypes[refusal.Status]
	}
	if kind == "" {
		kind = "server_error"
	}
	writeJSON(w, refusal.Status, object{"error": object{"type": kind, "code": kind, "message": refusal.Message}})
}
