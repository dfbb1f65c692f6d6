// Checks histories of concurrent clients with Porcupine: is there an order of all operations on a key that respects
// their times and gives each one the answer it got? See docs/consistency.md, "How it is checked".
//
//	history-checker [-timeout 60s] [-html FOLDER] FILE...
//
// Exit code 0: every key of every file has such an order. 1: one has none; its operations are printed. 2: a file cannot
// be read or has nothing to check. 3: the time limit was too short to decide.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The first line of a file.
type header struct {
	Seed *int64 `json:"seed"`
	// "fenced": a write with an unknown outcome takes effect before every acknowledged write that began after its end,
	// or never, and only if its condition holds then. "plain": at any later time, and whatever its condition.
	Model string `json:"model"`
}

// Found is what an operation that reads has seen. An empty value: no object.
type found struct {
	// The write that the body or, for HEAD, the ETag belongs to; "?" for an ETag with "-" that belongs to none.
	Value string `json:"value"`
	// The user metadata, which each write sets to its value.
	Mark string `json:"mark"`
	Tags string `json:"tags"`
	// GET and HEAD: the object has tags.
	Tagged bool `json:"tagged"`
}

type operation struct {
	Client int    `json:"client"`
	Key    string `json:"key"`
	// put, delete, read (GET), head, tag (PutObjectTagging) or tags (GetObjectTagging).
	Op string `json:"op"`
	// The value that put stores, unique, and the tags that put and tag store.
	Value string `json:"value"`
	Tags  string `json:"tags"`
	// Conditions of put: If-None-Match: *, and If-Match with the ETag of this value.
	Create bool   `json:"create"`
	Match  string `json:"match"`
	// Nanoseconds of one monotonic clock.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`
	// ok; refused (412); absent (404); fail: no effect; info: unknown.
	Outcome string `json:"outcome"`
	Found   found  `json:"found"`
}

func (op operation) writes() bool { return op.Op == "put" || op.Op == "delete" || op.Op == "tag" }

// State of a key.
type state struct {
	value string
	tags  string
	// Until then, a reader may miss what is recorded right after the object, in the model "plain": the end of the write that
	// stored it.
	settles int64
	// When the latest begun one of the acknowledged writes so far began: of the object, and of its tags.
	lastPut, lastTag int64
}

func modelOf(kind string) (porcupine.Model, error) {
	if kind != "fenced" && kind != "plain" {
		return porcupine.Model{}, fmt.Errorf("no such model: %q", kind)
	}
	fenced := kind == "fenced"
	return porcupine.Model{
		Init: func() interface{} { return state{} },
		Step: func(current, input, _ interface{}) (bool, interface{}) {
			legal, next := step(fenced, current.(state), input.(operation))
			return legal, next
		},
		DescribeOperation: func(input, _ interface{}) string { return describe(input.(operation)) },
		DescribeState: func(current interface{}) string {
			s := current.(state)
			if s.value == "" {
				return "no object"
			}
			return s.value + ", tags " + s.tags
		},
	}, nil
}

func step(fenced bool, s state, op operation) (bool, state) {
	holds := (!op.Create || s.value == "") && (op.Match == "" || s.value == op.Match)
	unsettled := !fenced && op.Call <= s.settles
	switch op.Outcome {
	case "info":
		return true, maybe(fenced, s, op, holds)
	case "refused":
		// Without fences, the ETag of record may not be written yet.
		return op.Op == "put" && (!holds || (op.Match != "" && unsettled)), s
	case "absent":
		return s.value == "", s
	}
	switch op.Op {
	case "put":
		return holds, applied(s, op, op.Return)
	case "delete":
		return true, applied(s, op, op.Return)
	case "tag":
		return s.value != "", applied(s, op, 0)
	case "tags":
		return s.value != "" && (op.Found.Tags == s.tags || (op.Found.Tags == "" && unsettled)), s
	case "read", "head":
		if s.value == "" {
			return false, s
		}
		tagged := op.Found.Tagged == (s.tags != "")
		if op.Found.Value == s.value && op.Found.Mark == s.value && tagged {
			return true, s
		}
		value := op.Found.Value == s.value || (op.Op == "head" && op.Found.Value == "?")
		mark := op.Found.Mark == s.value || op.Found.Mark == ""
		return unsettled && value && mark && (tagged || !op.Found.Tagged), s
	}
	return false, s
}

// What an operation with an unknown outcome does when its turn comes. Its turn may also come after all others.
func maybe(fenced bool, s state, op operation, holds bool) state {
	if fenced {
		if s.lastPut > op.Return || s.lastTag > op.Return || !holds {
			return s
		}
	}
	if op.Op == "tag" && s.value == "" {
		return s
	}
	next := applied(s, op, math.MaxInt64)
	next.lastPut, next.lastTag = s.lastPut, s.lastTag
	return next
}

func applied(s state, op operation, settles int64) state {
	if op.Op == "tag" {
		s.tags = op.Tags
		s.lastTag = max(s.lastTag, op.Call)
		if settles == 0 {
			s.settles = 0
		}
		return s
	}
	s.value, s.tags, s.settles = op.Value, op.Tags, settles
	s.lastPut = max(s.lastPut, op.Call)
	return s
}

func describe(op operation) string {
	text := op.Op
	if op.writes() {
		text += " " + strings.TrimSpace(op.Value+" "+op.Tags)
	}
	if op.Create {
		text += " if there is none"
	}
	if op.Match != "" {
		text += " if " + op.Match
	}
	text += ": " + op.Outcome
	if !op.writes() && op.Outcome == "ok" {
		text += fmt.Sprintf(" value=%q mark=%q tags=%q tagged=%t", op.Found.Value, op.Found.Mark, op.Found.Tags, op.Found.Tagged)
	}
	return text
}

func read(from io.Reader) (header, []operation, error) {
	var head header
	var ops []operation
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.DisallowUnknownFields()
		if number == 1 {
			if err := decoder.Decode(&head); err != nil || head.Seed == nil {
				return head, nil, fmt.Errorf("line 1 is no header: %v", err)
			}
			continue
		}
		var op operation
		if err := decoder.Decode(&op); err != nil {
			return head, nil, fmt.Errorf("line %d: %v", number, err)
		}
		switch op.Outcome {
		case "ok", "refused", "absent", "fail", "info":
		default:
			return head, nil, fmt.Errorf("line %d: no such outcome: %q", number, op.Outcome)
		}
		if op.Return < op.Call || (op.Op == "put" && op.Value == "") {
			return head, nil, fmt.Errorf("line %d contradicts itself", number)
		}
		ops = append(ops, op)
	}
	return head, ops, lines.Err()
}

// Decides about the operations of a key. A write with an unknown outcome that no operation has seen multiplies the
// orders to try, and may come after all others, without a trace: an order without it is an order of all. So the search
// begins without these writes, and takes them in only where there is no order without them.
func decide(model porcupine.Model, history []porcupine.Operation, timeout time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	if witnessed := witnessed(history); len(witnessed) < len(history) {
		if result, info := porcupine.CheckOperationsVerbose(model, witnessed, timeout); result == porcupine.Ok {
			return result, info
		}
	}
	return porcupine.CheckOperationsVerbose(model, history, timeout)
}

// All operations but the puts and tags with an unknown outcome of which no operation has seen the value or the tags.
func witnessed(history []porcupine.Operation) []porcupine.Operation {
	seen := map[string]bool{}
	for _, each := range history {
		op := each.Input.(operation)
		seen[op.Match], seen[op.Found.Value], seen[op.Found.Mark], seen[op.Found.Tags] = true, true, true, true
	}
	delete(seen, "")
	kept := []porcupine.Operation{}
	for _, each := range history {
		op := each.Input.(operation)
		if op.Outcome != "info" || op.Op == "delete" || seen[op.Value] || seen[op.Tags] {
			kept = append(kept, each)
		}
	}
	return kept
}

// The operations that decide anything, by key.
func byKey(ops []operation) map[string][]porcupine.Operation {
	end := int64(0)
	for _, op := range ops {
		end = max(end, op.Return)
	}
	keys := map[string][]porcupine.Operation{}
	for _, op := range ops {
		if op.Outcome == "fail" || (op.Outcome == "info" && !op.writes()) {
			continue
		}
		until := op.Return
		if op.Outcome == "info" {
			until = end + 1
		}
		keys[op.Key] = append(keys[op.Key], porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: until})
	}
	return keys
}

func check(file string, timeout time.Duration, html string) (int, error) {
	opened, err := os.Open(file)
	if err != nil {
		return 2, err
	}
	defer opened.Close()
	head, ops, err := read(opened)
	if err != nil {
		return 2, err
	}
	model, err := modelOf(head.Model)
	if err != nil {
		return 2, err
	}
	keys := byKey(ops)
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	if len(names) == 0 {
		return 2, fmt.Errorf("there is nothing to check")
	}
	sort.Strings(names)
	worst := 0
	for _, key := range names {
		history := keys[key]
		result, info := decide(model, history, timeout)
		fmt.Printf("%s seed %d key %s: %d operations: %s\n", filepath.Base(file), *head.Seed, key, len(history), result)
		if result == porcupine.Ok {
			continue
		}
		if result == porcupine.Unknown {
			worst = max(worst, 3)
			continue
		}
		worst = 1
		sort.Slice(history, func(i, j int) bool { return history[i].Call < history[j].Call })
		for _, each := range history {
			op := each.Input.(operation)
			fmt.Printf("  %9.3f to %9.3f ms, client %d: %s\n", float64(op.Call)/1e6, float64(op.Return)/1e6, op.Client, describe(op))
		}
		if html != "" {
			page := filepath.Join(html, fmt.Sprintf("%s-%s.html", filepath.Base(file), key))
			if err := porcupine.VisualizePath(model, info, page); err != nil {
				return 2, err
			}
			fmt.Println("  drawn in", page)
		}
	}
	return worst, nil
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "time limit for each key")
	html := flag.String("html", "", "folder for drawings of keys without an order")
	flag.Parse()
	worst := 0
	if flag.NArg() == 0 {
		flag.Usage()
		worst = 2
	}
	for _, file := range flag.Args() {
		code, err := check(file, *timeout, *html)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
		}
		if worst == 0 || code == 1 || (code == 2 && worst != 1) {
			worst = code
		}
	}
	os.Exit(worst)
}
