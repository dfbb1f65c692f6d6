// Runs the code of the bundle, as a file of `dist/app`. A program keeps what V8 has compiled at its first start, in the
// manner of V8's code cache (https://v8.dev/blog/code-caching-for-devs): later starts take three fifths of the CPU time.
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { isMainThread, threadId } from 'node:worker_threads'

/** Time from the begin of a program until it keeps its compiled code, ms: a server is ready by then, and unhurried. */
const KEEP_AFTER_MS = 5000

/** What each file of the bundle is called with. Scripts cannot import by themselves: `$import` does it for them. */
const BEFORE = '(function (exports, require, module, __filename, __dirname, $import) { "use strict"; '
const AFTER = '\n})'

/** The files of one bundle in one thread: CommonJS, whose names change with their text. Each of them runs once. */
class Bundle {
  #folder
  #require = createRequire(import.meta.url)
  #modules = new Map()
  /** Compiled in this process, with the SHA-256 of their texts, by their files, until they are kept. */
  #scripts = new Map()
  /** Compiled in an earlier process, by their files. */
  #compiled = new Map()

  constructor(folder) {
    this.#folder = folder
  }

  /** The exports of a file. @param file such as `./main-CVx2Zs1d.cjs` */
  load = (file) => {
    const known = this.#modules.get(file)
    if (known !== undefined) return known.exports
    const module = { exports: {} }
    this.#modules.set(file, module)
    const path = join(this.#folder, file)
    const require = (id) => (id.startsWith('./') ? this.load(id) : this.#require(id))
    try {
      const run = this.#compile(file, path).runInThisContext()
      run(module.exports, require, module, path, this.#folder, (specifier) => import(specifier))
    } catch (error) {
      // The next one that wants it may find it, as where too many files were open.
      this.#modules.delete(file)
      throw error
    }
    return module.exports
  }

  /** Runs a program with the code that an earlier process has compiled, and keeps the code that was not. */
  run(program, file, keepAfterMs) {
    // V8 refuses code that was compiled with other flags.
    if (isMainThread) makeObjectsYoung()
    const name = `${program}-${process.version}-${process.arch}`
    const places = cacheFolders(this.#folder)
    this.#compiled = readFirst(places, name)
    setTimeout(() => {
      this.#keep(places, name)
    }, keepAfterMs).unref()
    this.load(file)
  }

  #compile(file, path) {
    const bytes = readFileSync(path)
    const source = digest(bytes).toString('base64')
    const kept = this.#compiled.get(file)
    // V8 compares the length of the text alone.
    const cachedData = kept?.source === source ? kept.code : undefined
    const options = { filename: path, columnOffset: -BEFORE.length, cachedData }
    // The build has escaped what is not ASCII or Latin-1.
    const script = new Script(BEFORE + bytes.toString('latin1') + AFTER, options)
    if (cachedData === undefined || script.cachedDataRejected) this.#scripts.set(file, { source, script })
    return script
  }

  #keep(places, name) {
    // What is loaded later is rare.
    const scripts = this.#scripts
    this.#compiled = new Map()
    this.#scripts = { set() {} }
    if (scripts.size === 0) return
    // Another process may have kept code of other files meanwhile; those of an older bundle are gone.
    const before = [...readFirst(places, name)].filter(([file]) => existsSync(join(this.#folder, file)))
    const compiled = new Map(before)
    for (const [file, { source, script }] of scripts) compiled.set(file, { source, code: script.createCachedData() })
    writeFirst(places, name, compiled)
  }
}

/**
 * Has V8 make no object old from the start, in any thread. It does so where it has seen many of a kind grow old, and
 * then each context of a request keeps the request until the whole heap is collected. With `RunningExchanges`, which
 * has the same reason, it brings a GET and a HEAD to 0.9 of the CPU time.
 */
function makeObjectsYoung() {
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** Where compiled code may be: beside its sources, for who can write there can change these too; else in a private one. */
function cacheFolders(folder) {
  const { XDG_CACHE_HOME } = process.env
  const beside = join(folder, 'compiled')
  try {
    const caches = XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache')
    return [beside, join(caches, 'dealgate')]
  } catch {
    // The user has no home.
    return [beside]
  }
}

/** The compiled code in the first of the folders that has a whole file of this name; empty without one. */
function readFirst(folders, name) {
  for (const folder of folders) {
    try {
      if (!isTrusted(lstatSync(folder))) continue
      return unpack(readTrusted(join(folder, name)))
    } catch {
      // Absent, damaged, or of others: V8 compiles again.
    }
  }
  return new Map()
}

/** Writes to the first of the folders that can be written: a reader sees a whole file, or none. */
function writeFirst(folders, name, compiled) {
  for (const folder of folders) {
    const draft = join(folder, `${name}.${process.pid}-${threadId}`)
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      if (!isTrusted(lstatSync(folder))) continue
      writeFileSync(draft, pack(compiled), { flag: 'wx', mode: 0o600 })
      renameSync(draft, join(folder, name))
      return
    } catch {
      // Not writable, or full: the next start compiles again.
      remove(draft)
    }
  }
}

function remove(draft) {
  try {
    unlinkSync(draft)
  } catch {
    // It was not made.
  }
}

/** Throws an Error for a file that others than its owner can write, or whose owner is not trusted. */
function readTrusted(path) {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  try {
    const stats = fstatSync(file)
    if (!stats.isFile() || !isTrusted(stats)) throw new Error(`${path} is not that of this user alone.`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

/** V8 runs what is in such a file unseen: only this user, or the owner of the program, may have written it. */
function isTrusted({ uid, mode }) {
  // Windows has neither owners nor modes in this form, and both folders are private there.
  if (process.platform === 'win32') return true
  const isOwn = uid === process.getuid() || uid === statSync(fileURLToPath(import.meta.url)).uid
  return isOwn && (mode & 0o022) === 0
}

const DIGEST_BYTES = 32

/**
 * SHA-256 of what follows; length of the table in bytes, 4 bytes; the table as JSON, with the name of each file, the
 * length of its code and the SHA-256 of its text; compiled code.
 */
function pack(compiled) {
  const rows = [...compiled].map(([file, { source, code }]) => [file, code.length, source])
  const table = Buffer.from(JSON.stringify(rows))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(table.length)
  const content = Buffer.concat([length, table, ...[...compiled.values()].map(({ code }) => code)])
  return Buffer.concat([digest(content), content])
}

/** Reads what `pack` has written. Throws an Error where that is damaged: V8 does not look. */
function unpack(bytes) {
  const content = bytes.subarray(DIGEST_BYTES)
  if (!digest(content).equals(bytes.subarray(0, DIGEST_BYTES))) throw new Error('The file is damaged.')
  let at = 4 + content.readUInt32LE(0)
  const table = JSON.parse(content.toString('utf8', 4, at))
  const compiled = new Map()
  for (const [file, length, source] of table) {
    compiled.set(file, { source, code: content.subarray(at, at + length) })
    at += length
  }
  return compiled
}

function digest(content) {
  return createHash('sha256').update(content).digest()
}

const bundle = new Bundle(dirname(fileURLToPath(import.meta.url)))

/** The exports of a file of this bundle. */
export const load = (file) => bundle.load(file)

/** Runs a file of this bundle as a program, which has compiled code of its own. */
export const run = (program, file, keepAfterMs = KEEP_AFTER_MS) => bundle.run(program, file, keepAfterMs)
