import { createHash, randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { type ClientRequest, get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { dirname } from 'node:path'
import { syncFolder } from '../../../common/files/private-file.js'
import { type CarServers, lookupOf, requireAddress } from './addresses.js'

export interface WantedCar {
  readonly url: string
  /** MD5 in hexadecimal digits; null when the task does not name it. */
  readonly md5: string | null
  /** Bytes; null when the task does not name it: the server must do so. */
  readonly size: number | null
  /** Most bytes that the provider takes. */
  readonly most: number
  /** Called with the size before the first byte is stored; false ends the fetch with NoRoomError. */
  reserve(size: number): boolean
  /** False when another process fetches it by now: then the file is left to that one. */
  isWanted(): boolean
}

/** How a provider asks a server, and how long it waits for it. */
export interface FetchOptions extends FetchTimes {
  readonly servers: CarServers
}

/** How long a provider waits for a server. */
export interface FetchTimes {
  /** Longest time to the head of the answer, and then without a byte, ms. */
  readonly idleMs: number
  /** Time in which the server may be slower than `bytesPerSecond`, ms. */
  readonly graceMs: number
  /** Least average after that time. */
  readonly bytesPerSecond: number
  /** ms of a monotonic clock. */
  readonly now: () => number
}

/** A CAR that cannot be fetched or is not the one that the task names. The message is a record for the operator. */
export class FetchError extends Error {
  override readonly name: string = 'FetchError'
}

/** There is no room for the CAR now. */
export class NoRoomError extends FetchError {
  override readonly name = 'NoRoomError'
}

/**
 * Fetches a CAR into a file, which is whole and durable when the promise resolves to its size in bytes. When it
 * rejects, there is no file. Throws FetchError, and the reason of `signal`. Does not follow redirects.
 */
export async function fetchCar(
  car: WantedCar,
  target: string,
  asking: FetchOptions,
  signal: AbortSignal,
): Promise<number> {
  // Another process may fetch it when this one has been stopped for a while.
  const part = `${target}.${randomUUID()}.part`
  let isNamed = false
  const response = await answer(car.url, asking, signal)
  try {
    const size = sizeOf(response, car)
    if (!car.reserve(size)) throw new NoRoomError('There is no room for the file now.')
    const md5 = await store(response, size, part, asking)
    if (car.md5 !== null && md5 !== car.md5) {
      throw new FetchError(`The MD5 of the file is not ${car.md5}, which the task names.`)
    }
    if (!car.isWanted()) throw new FetchError('Another process fetches the file.')
    isNamed = true
    await rename(part, target)
    await syncFolder(dirname(target))
    return size
  } catch (error) {
    await rm(part, { force: true })
    if (isNamed) await rm(target, { force: true })
    signal.throwIfAborted()
    throw error instanceof FetchError || isOfDisk(error) ? error : unreachable(error)
  } finally {
    response.destroy()
  }
}

function answer(url: string, { idleMs, servers }: FetchOptions, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = ask(url, servers, signal)
    const expire = (): void => void request.destroy(new Error(`nothing arrived for ${idleMs / 1000} seconds`))
    // A server that sends its head byte by byte is never idle.
    const head = setTimeout(expire, idleMs)
    request.on('response', (response) => {
      clearTimeout(head)
      resolve(response)
    })
    request.setTimeout(idleMs, expire)
    request.on('error', (error) => {
      clearTimeout(head)
      reject(signal.aborted ? signal.reason : unreachable(error))
    })
  })
}

/** Sends the request. Throws FetchError for a URL that no request can be made of. */
function ask(url: string, servers: CarServers, signal: AbortSignal): ClientRequest {
  try {
    const target = new URL(url)
    if (target.username !== '' || target.password !== '') throw new FetchError('The URL has a user name or a password.')
    requireAddress(target, servers)
    const get = target.protocol === 'https:' ? getSecure : getPlain
    const headers = { 'accept-encoding': 'identity' }
    return get(target, { agent: false, signal, headers, lookup: lookupOf(target, servers) })
  } catch (error) {
    throw error instanceof FetchError ? error : unreachable(error)
  }
}

/** The size of the file, which task and server agree on. */
function sizeOf({ statusCode, headers }: IncomingMessage, { size, most }: WantedCar): number {
  if (statusCode !== 200) throw new FetchError(`The server answers ${statusCode} instead of the file.`)
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
  const bytes = size ?? length
  if (bytes === undefined) throw new FetchError('Neither the task nor the server names the size of the file.')
  if (length !== undefined && length !== bytes) {
    throw new FetchError(`The file has ${length} bytes; the task names ${bytes}.`)
  }
  if (bytes > most) throw new FetchError(`The file has ${bytes} bytes; the provider takes at most ${most}.`)
  return bytes
}

/** Returns the MD5. Throws FetchError unless exactly `size` bytes arrive. */
async function store(response: IncomingMessage, size: number, target: string, fetchTimes: FetchTimes): Promise<string> {
  const digest = createHash('md5')
  const begun = fetchTimes.now()
  const file = await open(target, 'w', 0o600)
  let arrived = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      arrived += chunk.length
      if (arrived > size) throw new FetchError(`The file has more than ${size} bytes.`)
      requirePace(arrived, fetchTimes.now() - begun, fetchTimes)
      digest.update(chunk)
      await writeAll(file, chunk)
    }
    if (arrived < size) throw new FetchError(`The file has ${arrived} bytes instead of ${size}.`)
    await file.sync()
  } finally {
    await file.close()
  }
  return digest.digest('hex')
}

function requirePace(bytes: number, elapsedMs: number, { graceMs, bytesPerSecond }: FetchTimes): void {
  if (bytes < ((elapsedMs - graceMs) / 1000) * bytesPerSecond) {
    throw new FetchError(`The server sends less than ${bytesPerSecond} bytes per second.`)
  }
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten
}

/** An error of the provider's own disk, which says nothing about the file. */
function isOfDisk(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && /^(open|write|fsync|close|rename)$/.test(String(error.syscall))
}

function unreachable(error: unknown): FetchError {
  const { code, message } = error as NodeJS.ErrnoException
  return new FetchError(`The file cannot be fetched: ${code ?? message}.`, { cause: error })
}
