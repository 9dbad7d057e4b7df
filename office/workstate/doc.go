// Package workstate is what the office makes of the world outside: tickets, pull requests, documents and what is said about them. It
// reads events and names, tells what belongs together and who may wake whom, and builds the bundle that an offer brings along.
//
// It is pure: no clock, no store, no network. What it looks at is given to it, and reading and writing happen around it, in package
// office.
package workstate
