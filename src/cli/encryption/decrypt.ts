import { createReadStream, createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { headerEnd, MAX_HEADER_BYTES, openHeader } from '../../objects/encryption/age-header.js'
import { NONCE_BYTES, PayloadDecrypter, payloadKey } from '../../objects/encryption/payload.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { keyFileOf, readKeys } from './key-commands.js'

interface Flags {
  readonly output?: string
}

/** `dealgate decrypt <file>`: what fails writes no file. */
export async function decrypt(config: Config, file: string, { output }: Flags): Promise<void> {
  const keyFile = keyFileOf(config)
  const { identities } = await readKeys(keyFile)
  const { size } = await stat(file).catch((cause: Error) => {
    throw new Failure(`Cannot read ${file}: ${cause.message}`, { cause })
  })
  const begin = await beginning(file)
  const end = headerEnd(begin)
  if (end === undefined || size < end + NONCE_BYTES)
    throw new Failure(`${file} is no encrypted object: it does not begin with the header of an age file.`)
  const fileKey = await openHeader(begin.subarray(0, end), identities)
  if (typeof fileKey === 'string')
    throw new Failure(
      fileKey === 'no key'
        ? `No key of ${keyFile} opens ${file}. Name the right file with --encryption-keys.`
        : `The header of ${file} is damaged: ${fileKey}.`,
    )
  const nonce = (await beginning(file, end + NONCE_BYTES)).subarray(end)
  const decrypter = new PayloadDecrypter(payloadKey(fileKey, nonce), size - end)
  const content = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) yield* decrypter.take(chunk)
    decrypter.end()
  }
  const target = output === undefined ? process.stdout : createWriteStream(output, { flags: 'wx', mode: 0o600 })
  try {
    await pipeline(createReadStream(file, { start: end + NONCE_BYTES }), content, target, { end: output !== undefined })
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    if (output !== undefined && !exists) await rm(output, { force: true })
    throw new Failure(exists ? `${output} exists already.` : `${file}: ${(cause as Error).message}`, { cause })
  }
}

async function beginning(file: string, length = MAX_HEADER_BYTES): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of createReadStream(file, { end: length - 1 })) parts.push(part as Buffer)
  return Buffer.concat(parts)
}
