// Package podspec builds what one person's agent is made of: Pod, home, Secret and ServiceAccount.
//
// Everything here is a pure function of the person, its team and the operator's settings: no client, no clock. User patches
// apply to the Pod and the home's claim; afterwards the rules that patches may not break are checked again (see Pod).
package podspec
