import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isolatedEnv } from '../support/programs/run.js'
import { endsWithUs } from '../support/server/child.js'

const SERVER = source('python-forks.py')
const CLIENT = source('python-fork-client.py')
const PROGRAMS = ['aws', 's3cmd']

export interface PythonPrograms {
  /** Variables with which a test finds the programs. */
  readonly env: { readonly PATH: string; readonly FORKED_PROGRAMS: string; readonly DEALGATE_AWS_CLIS?: string }
  stop(): Promise<void>
}

/**
 * Stands in for `aws` and `s3cmd` on PATH, and for the programs of DEALGATE_AWS_CLIS: each runs in forks of an
 * interpreter that has loaded it. The tests run thousands of their commands, of which a start is most of the cost.
 * `aws` on PATH is the last of DEALGATE_AWS_CLIS, if that names any.
 */
export async function startPythonPrograms(): Promise<PythonPrograms> {
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-programs-'))
  const stops: (() => Promise<unknown>)[] = []
  const standIn = async (path: string, number: number) => {
    const python = interpreterOf(path)
    if (python === undefined) return path
    const own = join(folder, String(number))
    mkdirSync(own)
    stops.push(await startForks(python, path, join(own, 'socket')))
    const program = join(own, basename(path))
    const head = `#!${python} -IS\nSOCKET = ${JSON.stringify(join(own, 'socket'))}\n`
    writeFileSync(program, head + readFileSync(CLIENT, 'utf8'), { mode: 0o755 })
    return program
  }
  const { PATH = '', DEALGATE_AWS_CLIS: named } = process.env
  const paths = (named ?? '').split(/[:\s]+/).filter(Boolean)
  const current = paths.findLast((path) => basename(path) === 'aws')
  const onPath = PROGRAMS.flatMap((name) => (name === 'aws' && current) || (found(name, PATH) ?? []))
  const programs = await Promise.all([...onPath, ...paths].map(standIn))
  const folders = programs.slice(0, onPath.length).map((program) => join(program, '..'))
  return {
    env: {
      PATH: [...folders, PATH].join(delimiter),
      FORKED_PROGRAMS: folder,
      ...(named !== undefined && { DEALGATE_AWS_CLIS: programs.slice(onPath.length).join(':') }),
    },
    async stop() {
      await Promise.all(stops.map((stop) => stop()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts the server of one program. Returns what ends it. */
async function startForks(python: string, script: string, socket: string): Promise<() => Promise<unknown>> {
  const child = spawn(python, [SERVER, script, socket], { stdio: ['pipe', 'pipe', 'inherit'], env: isolatedEnv({}) })
  endsWithUs(child)
  const ready = await Promise.race([once(child.stdout, 'data').then(() => true), once(child, 'exit')])
  if (ready !== true) throw new Error(`the interpreter of ${script} ended`)
  return () => {
    const exit = once(child, 'exit')
    child.stdin.end()
    return exit
  }
}

/** The Python that a script names in its first line; undefined for other programs. */
function interpreterOf(path: string): string | undefined {
  return /^#!\s*(\S*python[\d.]*)\s*\n/.exec(readFileSync(path, 'latin1').slice(0, 200))?.[1]
}

function found(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((program) => {
      try {
        accessSync(program, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/** A file beside the source of this module: the compiler copies only TypeScript. */
function source(name: string): string {
  return fileURLToPath(new URL(`../../../test/runner/${name}`, import.meta.url))
}
