// Runs the scripts of the bundle. They are no ES modules, because Node.js 20 keeps no compiled code of those: compiling
// is half of a start. The code that a start has compiled is kept beside the bundle, where that may be written; V8 takes
// no code of another version, other flags or another source. It checks nothing else, so the checksums are here.
const { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { cachedDataVersionTag } = require('node:v8')
const { Script } = require('node:vm')
const { isMainThread, threadId } = require('node:worker_threads')
const { crc32 } = require('node:zlib')

/** Threads compile other parts of the scripts that they share. */
const kept = join(__dirname, 'compiled', `${cachedDataVersionTag()}-${process.arch}`, isMainThread ? 'main' : 'thread')
const HEAD_BYTES = 8
/** Age at which a draft is removed, ms: a process writes one within milliseconds. */
const DRAFT_MS = 60 * 60 * 1000

const modules = new Map()
/** Scripts of which no compiled code is kept yet. */
const fresh = new Map()

/** The exports of a script of the bundle, which runs once. */
function load(name) {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  modules.set(name, module)
  const filename = join(__dirname, name)
  try {
    compile(name, filename)(module.exports, inside, module, filename, __dirname, (id) => import(id), keepCompiled)
  } catch (error) {
    // A process may have no file descriptor left for a moment: the next call tries again.
    modules.delete(name)
    throw error
  }
  return module.exports
}

function inside(id) {
  return id.startsWith('./') ? load(id.slice(2)) : require(id)
}

function compile(name, filename) {
  const source = readFileSync(filename)
  const text = source.toString('latin1')
  const sum = crc32(source)
  const cachedData = compiledCode(name, sum)
  if (cachedData !== undefined) {
    const script = new Script(text, { filename, cachedData })
    if (!script.cachedDataRejected) return script.runInThisContext()
  }
  const script = new Script(text, { filename })
  fresh.set(name, { script, sum })
  return script.runInThisContext()
}

function compiledCode(name, sum) {
  let file
  try {
    file = readFileSync(join(kept, name))
  } catch {
    return undefined
  }
  if (file.length < HEAD_BYTES || file.readUInt32LE(0) !== sum) return undefined
  const code = file.subarray(HEAD_BYTES)
  return file.readUInt32LE(4) === crc32(code) ? code : undefined
}

/** Keeps what has been compiled until now for the next starts. Threads and programs may do so at the same time. */
function keepCompiled() {
  try {
    if (!isOwn()) fresh.clear()
    const isFresh = fresh.size > 0
    if (isFresh) mkdirSync(kept, { recursive: true, mode: 0o755 })
    for (const [name, { script, sum }] of fresh) {
      const code = script.createCachedData()
      const head = Buffer.alloc(HEAD_BYTES)
      head.writeUInt32LE(sum, 0)
      head.writeUInt32LE(crc32(code), 4)
      const draft = join(kept, `${name}.${process.pid}-${threadId}`)
      writeFileSync(draft, Buffer.concat([head, code]), { mode: 0o644 })
      renameSync(draft, join(kept, name))
    }
    if (isFresh) removeOldDrafts()
  } catch {
    // The folder of the program may be read-only, or its disk full: each start compiles anew.
  }
  fresh.clear()
}

function removeOldDrafts() {
  for (const name of readdirSync(kept)) {
    const file = join(kept, name)
    // Another process may rename its draft now.
    const written = /\.\d+-\d+$/.test(name) && statSync(file, { throwIfNoEntry: false })?.mtimeMs
    if (written && Date.now() - written > DRAFT_MS) rmSync(file, { force: true })
  }
}

/** Folders that a start by root makes in the program of another user keep that user from removing the program. */
function isOwn() {
  return process.getuid === undefined || process.getuid() === statSync(__dirname).uid
}

exports.load = load
