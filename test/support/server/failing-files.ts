import fs, { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Preloaded into a server (`--import`), fails its accesses of files as the system would: the file that FAILING_FILES
 * names has a Failing in JSON, or nothing. What Node.js does by a descriptor counts for the path that it was opened by.
 */
export interface Failing {
  /** Such as ENOSPC. */
  readonly code: string
  /** Of `open`, `mkdir`, `read`, `write`, `sync`. */
  readonly calls: readonly string[]
  /** Regular expression for the path. */
  readonly path: string
}

type Callable = (...args: unknown[]) => unknown

const control = process.env.FAILING_FILES
const readNow = readFileSync

function failing(): Failing | undefined {
  const text = control === undefined ? '' : readNow(control, 'utf8')
  return text === '' ? undefined : (JSON.parse(text) as Failing)
}

function failureOf(call: string, path: unknown, options?: unknown): Error | undefined {
  const wanted = failing()
  if (!wanted?.calls.includes(call) || !new RegExp(wanted.path).test(String(path))) return undefined
  // As Node.js answers other failures than a few (https://github.com/nodejs/node/blob/v20.18.1/src/node_file.cc).
  const hides = typeof options === 'object' && options !== null && 'recursive' in options && options.recursive === true
  const code = hides ? 'ENOENT' : wanted.code
  return Object.assign(new Error(`${code}: injected, ${call} '${path}'`), { code, syscall: call, path })
}

const paths = new Map<number, unknown>()

function patch(owner: object, name: string, make: (original: Callable) => Callable): void {
  const methods = owner as Record<string, Callable>
  const original = methods[name]
  if (original) methods[name] = make(original)
}

/** @param pathOf the path of the arguments, with `this` */
function failCallback(name: string, call: string, pathOf: (first: unknown) => unknown): void {
  patch(fs, name, (original) => (...args) => {
    const failure = failureOf(call, pathOf(args[0]), args[1])
    const done = args.at(-1)
    if (failure && typeof done === 'function') return setImmediate(() => done(failure))
    return original(...args)
  })
}

function failSync(name: string, call: string): void {
  patch(fs, name, (original) => (...args) => {
    const failure = failureOf(call, args[0], args[1])
    if (failure) throw failure
    return original(...args)
  })
}

failSync('openSync', 'open')
failSync('mkdirSync', 'mkdir')
for (const [name, call] of Object.entries({ read: 'read', write: 'write', writev: 'write', fsync: 'sync' }))
  failCallback(name, call, (fd) => paths.get(fd as number))
patch(fs.promises, 'mkdir', (original) => async (...args) => {
  const failure = failureOf('mkdir', args[0], args[1])
  if (failure) throw failure
  return original(...args)
})

/** The class of handles has no name outside: it is reached by the first one. */
let isPatched = false
const opened = new WeakMap<object, unknown>()
patch(fs.promises, 'open', (original) => async (...args) => {
  const failure = failureOf('open', args[0])
  if (failure) throw failure
  const handle = (await original(...args)) as fs.promises.FileHandle
  opened.set(handle, args[0])
  paths.set(handle.fd, args[0])
  if (!isPatched) {
    isPatched = true
    const calls = { read: 'read', write: 'write', writev: 'write', writeFile: 'write', sync: 'sync', datasync: 'sync' }
    for (const [name, call] of Object.entries(calls))
      patch(Object.getPrototypeOf(handle), name, (method) => {
        return async function (this: object, ...given) {
          const problem = failureOf(call, opened.get(this))
          if (problem) throw problem
          return Reflect.apply(method, this, given)
        }
      })
  }
  return handle
})
syncBuiltinESMExports()
