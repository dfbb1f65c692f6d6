package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type scrape struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

type sample struct {
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"`
}

type result struct {
	Error   string   `json:"error,omitempty"`
	Samples []sample `json:"samples"`
}

type asked struct {
	Rules   string   `json:"rules"`
	Scrapes []scrape `json:"scrapes"`
	At      int64    `json:"at"`
	Queries []string `json:"queries"`
}

type answer struct {
	Problems []string `json:"problems"`
	Results  []result `json:"results"`
}

// Checks a file of rules and runs queries over scrapes with the engine of Prometheus.
//
// Standard input is JSON:
// {"rules": text, "scrapes": [{"at": seconds, "text": scrape}], "at": seconds, "queries": [text]}.
// Standard output is JSON:
// {"problems": [text], "results": [{"error": text, "samples": [{"labels": {}, "value": text}]}]}.
func runQueries() {
	var in asked
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	out := answer{Problems: []string{}, Results: []result{}}
	if in.Rules != "" {
		_, problems := rulefmt.Parse([]byte(in.Rules))
		for _, problem := range problems {
			out.Problems = append(out.Problems, problem.Error())
		}
	}
	stored, err := read(in.Scrapes)
	if err != nil {
		log.Fatal(err)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: 10 * time.Second})
	for _, query := range in.Queries {
		out.Results = append(out.Results, run(engine, stored, query, time.Unix(in.At, 0)))
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}

func run(engine *promql.Engine, stored *memory, query string, at time.Time) result {
	prepared, err := engine.NewInstantQuery(context.Background(), stored, nil, query, at)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer prepared.Close()
	done := prepared.Exec(context.Background())
	if done.Err != nil {
		return result{Error: done.Err.Error()}
	}
	vector, err := done.Vector()
	if err != nil {
		return result{Error: err.Error()}
	}
	found := result{Samples: []sample{}}
	for _, one := range vector {
		found.Samples = append(found.Samples, sample{one.Metric.Map(), strconv.FormatFloat(one.F, 'g', -1, 64)})
	}
	return found
}

// memory is a storage.Queryable over all samples of the scrapes.
type memory struct {
	series []storage.Series
}

type point struct {
	t int64
	v float64
}

func (p point) T() int64                      { return p.t }
func (p point) F() float64                    { return p.v }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

func read(scrapes []scrape) (*memory, error) {
	points := map[string][]chunks.Sample{}
	named := map[string]labels.Labels{}
	for _, one := range scrapes {
		parser, err := textparse.New([]byte(one.Text), "text/plain; version=0.0.4", false, labels.NewSymbolTable())
		if err != nil {
			return nil, err
		}
		for {
			entry, err := parser.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if entry != textparse.EntrySeries {
				continue
			}
			var of labels.Labels
			parser.Metric(&of)
			_, _, value := parser.Series()
			points[of.String()] = append(points[of.String()], point{one.At * 1000, value})
			named[of.String()] = of
		}
	}
	stored := &memory{}
	for name, samples := range points {
		stored.series = append(stored.series, storage.NewListSeries(named[name], samples))
	}
	slices.SortFunc(stored.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return stored, nil
}

func (m *memory) Querier(_, _ int64) (storage.Querier, error) { return m, nil }

func (m *memory) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, series := range m.series {
		of := series.Labels()
		if !slices.ContainsFunc(matchers, func(by *labels.Matcher) bool { return !by.Matches(of.Get(by.Name)) }) {
			found = append(found, series)
		}
	}
	return &set{series: found, at: -1}
}

func (m *memory) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (m *memory) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (m *memory) Close() error { return nil }

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
