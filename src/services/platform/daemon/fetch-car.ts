import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { type ClientRequest, get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'

/** What a provider knows of a CAR before it fetches it. */
export interface WantedCar {
  readonly url: string
  /** MD5 in hexadecimal digits; null when the task does not name it. */
  readonly md5: string | null
  /** Bytes; null when the task does not name it. */
  readonly size: number | null
  /** Most bytes that the provider takes. */
  readonly most: number
}

/** A CAR that cannot be fetched or is not the one that the task names. The message is a note for the poster. */
export class FetchError extends Error {
  override readonly name = 'FetchError'
}

/**
 * Fetches a CAR into a file, which is durable when the promise resolves to its size in bytes. When it rejects, there is
 * no file. Throws FetchError, and the reason of `signal`. Does not follow redirects.
 * @param idleMs longest time without a byte
 */
export async function fetchCar(car: WantedCar, target: string, idleMs: number, signal: AbortSignal): Promise<number> {
  const response = await answer(car.url, idleMs, signal)
  let kept = false
  try {
    checkHead(response, car)
    const { size, md5 } = await store(response, car, target)
    if (car.size !== null && size !== car.size) {
      throw new FetchError(`The file has ${size} bytes; the task names ${car.size}.`)
    }
    if (car.md5 !== null && md5 !== car.md5) {
      throw new FetchError(`The MD5 of the file is not ${car.md5}, which the task names.`)
    }
    kept = true
    return size
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof FetchError || isOfDisk(error) ? error : unreachable(error)
  } finally {
    response.destroy()
    if (!kept) await rm(target, { force: true })
  }
}

function answer(url: string, idleMs: number, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = ask(url, signal)
    request.on('response', resolve)
    request.setTimeout(idleMs, () => request.destroy(new Error(`nothing arrived for ${idleMs / 1000} seconds`)))
    request.on('error', (error) => reject(signal.aborted ? signal.reason : unreachable(error)))
  })
}

/** Sends the request. Throws FetchError for a URL that no request can be made of. */
function ask(url: string, signal: AbortSignal): ClientRequest {
  try {
    const target = new URL(url)
    if (target.username !== '' || target.password !== '') throw new FetchError('The URL has a user name or a password.')
    const get = target.protocol === 'https:' ? getSecure : getPlain
    return get(target, { agent: false, signal, headers: { 'accept-encoding': 'identity' } })
  } catch (error) {
    throw error instanceof FetchError ? error : unreachable(error)
  }
}

function checkHead({ statusCode, headers }: IncomingMessage, { size, most }: WantedCar): void {
  if (statusCode !== 200) throw new FetchError(`The server answers ${statusCode} instead of the file.`)
  const length = headers['content-length']
  if (length === undefined) return
  if (Number(length) > most) throw new FetchError(`The file has ${length} bytes; the provider takes at most ${most}.`)
  if (size !== null && Number(length) !== size) {
    throw new FetchError(`The file has ${length} bytes; the task names ${size}.`)
  }
}

async function store(
  response: IncomingMessage,
  { size: wanted, most }: WantedCar,
  target: string,
): Promise<{ size: number; md5: string }> {
  const limit = Math.min(most, wanted ?? most)
  const digest = createHash('md5')
  const file = await open(target, 'w', 0o600)
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw new FetchError(`The file has more than ${limit} bytes.`)
      digest.update(chunk)
      await writeAll(file, chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return { size, md5: digest.digest('hex') }
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten
}

/** An error of the provider's own disk, which says nothing about the file. */
function isOfDisk(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && /^(open|write|fsync|close)$/.test(String(error.syscall))
}

function unreachable(error: unknown): FetchError {
  const { code, message } = error as NodeJS.ErrnoException
  return new FetchError(`The file cannot be fetched: ${code ?? message}.`, { cause: error })
}
