import type { Load } from '../load/load.js'
import { LISTED, type Operation, type Subject } from '../servers/subject.js'
import { type CaseResult, interleaved, measure, type Run } from './measure.js'

const CONNECTIONS = 16
/** Bytes of an object. */
const SIZE = 1024
/** Objects that are read in turn. */
const READ = 200

/** Operations of one run. */
export type Counts = Readonly<Record<Operation, number>>

/** Measured together, because a round removes what it has stored. */
const CASES: readonly (readonly Operation[])[] = [['GET'], ['HEAD'], ['PUT', 'DELETE'], ['LIST']]

export const NAMES: Readonly<Record<Operation, string>> = {
  GET: 'GET 1 KiB',
  HEAD: 'HEAD',
  PUT: 'PUT 1 KiB',
  DELETE: 'DELETE',
  LIST: `ListObjectsV2 of ${LISTED} keys`,
}

/**
 * Operations on small objects over 16 connections. Each subject does each operation once before the rounds begin, so
 * that its code is compiled.
 * @param stores the subjects that store objects of their own, which are filled first
 * @returns also a sentence for each operation that a server of others failed at; without its runs of that operation
 */
export async function small(
  load: Load,
  subjects: readonly Subject[],
  stores: readonly Subject[],
  rounds: number,
  counts: Counts,
): Promise<{ results: CaseResult[]; failures: string[] }> {
  for (const store of stores) if (!store.operations) await fill(load, store)
  const results: CaseResult[] = []
  const failures: (readonly [Operation, name: string, message: string])[] = []
  for (const operations of CASES) {
    const runs = new Map<Operation, Record<string, Run[]>>(operations.map((operation) => [operation, {}]))
    const once = async (subject: Subject, round: number | 'first') => {
      for (const operation of operations) {
        if (!(subject.operations ?? operations).includes(operation)) continue
        if (failures.some(([at, name]) => at === operation && name === subject.name)) continue
        const paths = pathsOf(operation, subject, round, counts)
        const run = await one(load, subject, operation, counts[operation], paths).catch((error: Error) => {
          if (!subject.foreign) throw error
          failures.push([operation, subject.name, error.message])
        })
        if (round === 'first' || !run) continue
        const all = runs.get(operation) as Record<string, Run[]>
        all[subject.name] = [...(all[subject.name] ?? []), run]
      }
    }
    await interleaved(1, subjects, (subject) => once(subject, 'first'))
    await interleaved(rounds, subjects, once)
    for (const [operation, found] of runs) {
      // Runs before the failure have no counterpart in each round.
      for (const [at, name] of failures) if (at === operation) delete found[name]
      results.push({ name: NAMES[operation], unit: 'op', runs: found })
    }
  }
  return { results, failures: failures.map(([, , message]) => message.split('\n')[0] ?? '') }
}

async function fill(load: Load, store: Subject): Promise<void> {
  const paths = Array.from({ length: READ }, (_, i) => readPath(i))
  const listed = Array.from({ length: LISTED }, (_, i) => `listed/folder-${i % 10}/an-object-of-the-listing-${i}.txt`)
  // One object of each folder at a time: rclone fails where two requests make the same folder.
  for (const first of [paths.slice(0, 1), ...listed.slice(0, 10).map((path) => [path])])
    await one(load, store, 'PUT', 1, first)
  await one(load, store, 'PUT', paths.length, paths)
  await one(load, store, 'PUT', listed.length, listed)
}

function pathsOf(operation: Operation, { name }: Subject, round: number | 'first', counts: Counts): string[] {
  if (operation === 'LIST') return ['listed']
  if (operation === 'GET' || operation === 'HEAD') return Array.from({ length: READ }, (_, i) => readPath(i))
  const place = `bench/${name.replaceAll(/\W/g, '')}/${round}`
  return Array.from({ length: counts.PUT }, (_, i) => `${place}/${i}`)
}

function readPath(i: number): string {
  return `bench/small/${i}`
}

async function one(
  load: Load,
  subject: Subject,
  operation: Operation,
  count: number,
  paths: readonly string[],
): Promise<Run> {
  await subject.prepare?.()
  const { host, port } = subject
  const requests = {
    host,
    port,
    connections: CONNECTIONS,
    shots: paths.map((path) => subject.shot(operation, path, SIZE)),
    count,
    size: SIZE,
    sends: operation === 'PUT',
    expected: subject.expected(operation),
  }
  return measure(load, subject, { requests }, count)
}
