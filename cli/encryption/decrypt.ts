import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { AGE_MAGIC, headerEnd, MAX_HEADER_BYTES, openHeader } from '../../src/objects/encryption/age-header.js'
import { NONCE_BYTES, PayloadDecrypter, payloadKey, SEALED_CHUNK_BYTES } from '../../src/objects/encryption/payload.js'
import { describeError, Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { shellWord } from '../running.js'
import { type AgeSource, type ByteReader, openAgeSource } from './age-source.js'
import { keyFileOf, readKeys } from './key-commands.js'

interface Flags {
  readonly output?: string
  readonly path?: string
  readonly unpack?: true
  readonly printAgeCommand?: true
}

/** `dealgate decrypt <source>`: what fails leaves no file, and passes on no byte that is not verified. */
export async function decrypt(config: Config, from: string, flags: Flags): Promise<void> {
  const { output, path, unpack, printAgeCommand } = flags
  const keyFile = keyFileOf(config)
  const source = await openAgeSource(from, path?.split('/') ?? []).catch(refuse)
  try {
    if (printAgeCommand) process.stdout.write(`${ageCommand(source, from, keyFile, flags)}\n`)
    else await write(await (unpack ? unpacked(source) : opened(source, keyFile)), output, source.name)
  } finally {
    await source.bytes.close()
  }
  // A pipe that is read no further would keep the process.
  if (source.kind === 'input') process.stdin.destroy()
}

async function unpacked({ name, bytes }: AgeSource): Promise<AsyncIterable<Buffer>> {
  await requireAge(bytes, name)
  return bytes.rest()
}

async function requireAge(bytes: ByteReader, name: string): Promise<Buffer> {
  const begin = await bytes.peek(MAX_HEADER_BYTES).catch(refuse)
  const end = begin.toString('latin1', 0, AGE_MAGIC.length) === AGE_MAGIC ? headerEnd(begin) : undefined
  if (end === undefined || begin.length < end + NONCE_BYTES)
    throw new Failure(`${name} is no encrypted object: it does not begin with the header of an age file.`)
  return begin.subarray(0, end)
}

async function opened({ name, bytes }: AgeSource, keyFile: string): Promise<AsyncIterable<Buffer>> {
  const { identities } = await readKeys(keyFile)
  const header = await requireAge(bytes, name)
  const fileKey = await openHeader(header, identities)
  if (typeof fileKey === 'string')
    throw new Failure(
      fileKey === 'no key'
        ? `No key of ${keyFile} opens ${name}. Name the right file with --encryption-keys.`
        : `The header of ${name} is damaged: ${fileKey}.`,
    )
  await bytes.take(header.length)
  return contentOf(payloadKey(fileKey, await bytes.take(NONCE_BYTES)), bytes)
}

/** Decrypts chunks. The length of the payload is not known: the chunk that nothing follows is the last. */
async function* contentOf(key: Buffer, bytes: ByteReader): AsyncGenerator<Buffer> {
  const decrypter = new PayloadDecrypter(key, Number.POSITIVE_INFINITY)
  for (let chunk = 0; ; chunk++) {
    const next = await bytes.peek(SEALED_CHUNK_BYTES + 1)
    const sealed = await bytes.take(SEALED_CHUNK_BYTES)
    if (next.length > SEALED_CHUNK_BYTES) {
      yield* decrypter.take(sealed)
      continue
    }
    const last = new PayloadDecrypter(key, NONCE_BYTES + chunk * SEALED_CHUNK_BYTES + sealed.length, chunk)
    yield* last.take(sealed)
    return last.end()
  }
}

async function write(content: AsyncIterable<Buffer>, output: string | undefined, name: string): Promise<void> {
  if (output !== undefined && existsSync(output)) throw new Failure(`${output} exists already.`)
  // A file that is cut by a signal must not look like the whole.
  const draft = `${output}.part`
  const target = output === undefined ? process.stdout : createWriteStream(draft, { mode: 0o600, flush: true })
  try {
    await pipeline(content, target, { end: output !== undefined })
    if (output !== undefined) await rename(draft, output)
  } catch (cause) {
    if (output !== undefined) await rm(draft, { force: true })
    throw new Failure(`${name}: ${describeError(cause)}`, { cause })
  }
}

/** The command that opens the same without this program, or what remains to it. */
function ageCommand({ kind, isCar }: AgeSource, from: string, keyFile: string, { output, path }: Flags): string {
  const age = `age -d -i ${shellWord(keyFile)}${output === undefined ? '' : ` -o ${shellWord(output)}`}`
  if (isCar && kind !== 'input')
    return `dealgate decrypt${path === undefined ? '' : ` --path ${shellWord(path)}`} --unpack ${shellWord(from)} | ${age}`
  if (kind === 'url') return `curl -fsSL ${shellWord(from)} | ${age}`
  return kind === 'file' ? `${age} ${shellWord(from)}` : age
}

function refuse(error: unknown): never {
  throw error instanceof Failure ? error : new Failure(describeError(error), { cause: error })
}
