import type { Kind } from './kinds.js'

/**
 * The definition of an option, for flags, environment, config file, validation, `--help` and docs/reference/options.md.
 */
export interface Option<T = unknown> {
  readonly group: Group
  readonly kind: Kind<T & {}>
  /** Undefined if the option has no default. */
  readonly default: T
  /** Unit of the number. */
  readonly unit?: string
  readonly help: string
  /** Never printed. */
  readonly secret?: true
  /** Among the options that `serve --help` prints first. */
  readonly main?: true
  /** A running server uses a new value after a reload. */
  readonly live?: true
}

type Group =
  | 'Endpoint'
  | 'Console'
  | 'Gateway'
  | 'Platform'
  | 'Payment'
  | 'Network'
  | 'State'
  | 'Encryption'
  | 'Buckets'
  | 'Plugins'
  | 'Limits'
  | 'Metrics'
  | 'Logs'

type Details = Pick<Option, 'help' | 'unit' | 'secret' | 'main' | 'live'>

export function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default: NoInfer<T> },
): Option<T>

export function option<T extends {}>(group: Group, kind: Kind<T>, details: Details): Option<T | undefined>

export function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default?: T },
): Option<T | undefined> {
  return Object.freeze({ group, kind, default: undefined, ...(kind.unit && { unit: kind.unit }), ...details })
}

/** What all options and variables begin with. */
const PREFIX = /^(?:--|DEALGATE_)/

/** The word with the fewest changed letters, if these are at most half of it; undefined if none is so near. */
function nearest(word: string, words: Iterable<string>): string | undefined {
  let found: { readonly name: string; readonly changes: number } | undefined
  for (const name of words) {
    const changes = distance(word.toLowerCase(), name.toLowerCase())
    if (changes * 2 <= name.replace(PREFIX, '').length && changes < (found?.changes ?? Number.POSITIVE_INFINITY))
      found = { name, changes }
  }
  return found?.name
}

/** How many letters are inserted, removed or replaced: https://en.wikipedia.org/wiki/Levenshtein_distance */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length] ?? 0
}

/** A question that names the nearest word; empty without one. */
export function didYouMean(word: string, words: Iterable<string>): string {
  const name = nearest(word, words)
  return name === undefined ? '' : `. Did you mean ${name}?`
}
