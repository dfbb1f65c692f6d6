// Command history-checker reads a history of operations on S3 keys, a JSON object on each line of standard input, and
// checks with Porcupine that each key is linearizable. It prints one line for each key, and exits with 1 if a key is not
// linearizable, with 2 if it could not be decided in time or the history cannot be read.
//
//	history-checker [-html FOLDER]
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	patience = 60 * time.Second
	maxLine  = 1 << 20
	// Values of one key: the state has a bit for each.
	maxValues = 64
)

// operation is one request, as the recorder saw it. Times are of one monotonic clock, in ns.
type operation struct {
	Key    string `json:"key"`
	Client int    `json:"client"`
	// put, put-if-none, put-if-match, tag, delete, get or tags
	F string `json:"f"`
	// What a write stores; unique in the history. The tag of an object has the same value.
	Value string `json:"value"`
	// The value whose ETag If-Match names.
	Expected string `json:"expected"`
	Call     int64  `json:"call"`
	// Absent for an operation without a known outcome, which may take effect at any later time, or never.
	Return *int64 `json:"return"`
	// ok, precondition (412), absent (404) or unknown
	Outcome string `json:"outcome"`
	// What a get or a tags request found: a value, or '' for none.
	Found string `json:"found"`
	bit   uint64
}

// state of a key.
type state struct {
	// '' for no object.
	value string
	// The tag of the object; '' before it appears: docs/consistency.md allows that until the write is acknowledged.
	tag string
	// Writes that were carried out, or came too late to be.
	done uint64
}

func step(from, input, _ any) (bool, any) {
	s, op := from.(state), input.(operation)
	write := func() (bool, any) { return true, state{op.Value, "", s.done | op.bit} }
	skip := func(legal bool) (bool, any) { return legal, state{s.value, s.tag, s.done | op.bit} }
	// A condition of an operation with an unknown outcome may have held or not.
	conditional := func(held bool) (bool, any) {
		switch op.Outcome {
		case "ok":
			if held {
				return write()
			}
			return false, s
		case "unknown":
			if held {
				return write()
			}
			return skip(true)
		default:
			return skip(!held && (op.Outcome == "absent") == (op.F == "put-if-match" && s.value == ""))
		}
	}
	switch op.F {
	case "put":
		return write()
	case "put-if-none":
		return conditional(s.value == "")
	case "put-if-match":
		return conditional(s.value != "" && s.value == op.Expected)
	case "tag":
		if s.value == op.Value {
			return true, state{s.value, op.Value, s.done}
		}
		return s.done&op.bit != 0, s
	case "delete":
		return true, state{"", "", s.done}
	case "get":
		return op.Found == s.value, s
	case "tags":
		if op.Outcome == "absent" {
			return s.value == "", s
		}
		return s.value != "" && op.Found == s.tag, s
	default:
		return false, s
	}
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: step,
	DescribeOperation: func(input, _ any) string {
		op := input.(operation)
		return fmt.Sprintf("%s %s%s %s %s", op.F, op.Value, op.Expected, op.Outcome, op.Found)
	},
	DescribeState: func(s any) string { return fmt.Sprintf("%+v", s) },
}

func read() (map[string][]operation, error) {
	keys := map[string][]operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, err
		}
		keys[op.Key] = append(keys[op.Key], op)
	}
	return keys, lines.Err()
}

func check(key string, all []operation, html string) (porcupine.CheckResult, error) {
	bits := map[string]uint64{}
	history := make([]porcupine.Operation, len(all))
	for i, op := range all {
		if op.Value != "" && bits[op.Value] == 0 {
			if len(bits) == maxValues {
				return porcupine.Unknown, fmt.Errorf("%s has more than %d values", key, maxValues)
			}
			bits[op.Value] = 1 << len(bits)
		}
		op.bit = bits[op.Value]
		end := int64(math.MaxInt64)
		if op.Return != nil {
			end = *op.Return
		}
		history[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end}
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, patience)
	if result != porcupine.Ok && html != "" {
		return result, porcupine.VisualizePath(model, info, filepath.Join(html, key+".html"))
	}
	return result, nil
}

func run(html string) int {
	keys, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	sort.Strings(names)
	code := 0
	for _, name := range names {
		result, err := check(name, keys[name], html)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		fmt.Printf("%s: %s, %d operations\n", name, result, len(keys[name]))
		if result == porcupine.Illegal {
			code = 1
		} else if result == porcupine.Unknown && code == 0 {
			code = 2
		}
	}
	return code
}

func main() {
	html := flag.String("html", "", "folder for a page about each key that is not linearizable")
	flag.Parse()
	os.Exit(run(*html))
}
