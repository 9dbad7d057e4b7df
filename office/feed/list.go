package feed

// This file has the collections of the wire's objects, which are never null: what is empty is written as [] or {}.

import "encoding/json"

// List is a slice that is written as [] where it is empty or nil. A slice of the same element type can be assigned to it and it to one.
type List[T any] []T

// MarshalJSON writes an array, never null.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("[]"), nil
	}
	return marshal([]T(l))
}

// Map is a map by name that is written as {} where it is empty or nil. A map of the same type can be assigned to it and it to one.
type Map[T any] map[string]T

// MarshalJSON writes an object, never null.
func (m Map[T]) MarshalJSON() ([]byte, error) {
	if len(m) == 0 {
		return []byte("{}"), nil
	}
	return marshal(map[string]T(m))
}

// StringOr is a value that can be written as a string too. Text is the string, where it is one; else Value is the value. One is set.
type StringOr[T any] struct {
	Text  *string
	Value *T
}

// Text makes a StringOr of a string, which people write for short.
func Text[T any](s string) StringOr[T] { return StringOr[T]{Text: &s} }

// Whole makes a StringOr of a value in full.
func Whole[T any](v T) StringOr[T] { return StringOr[T]{Value: &v} }

// MarshalJSON writes the string or the value, null where there is neither.
func (s StringOr[T]) MarshalJSON() ([]byte, error) {
	if s.Text != nil {
		return marshal(*s.Text)
	}
	return marshal(s.Value)
}

// UnmarshalJSON reads a string or a value.
func (s *StringOr[T]) UnmarshalJSON(data []byte) error {
	*s = StringOr[T]{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &s.Text)
	}
	return json.Unmarshal(data, &s.Value)
}
