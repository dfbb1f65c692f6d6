import { createHash } from 'node:crypto'
import { close, fstat, open as openFd, read } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'

const BLOCK = 1024 * 1024
const readFd = promisify(read)
const statFd = promisify(fstat)
export const closeFd = promisify(close)
const openPath = promisify(openFd)

/** SHA-256 of a file, hexadecimal. */
export async function digestOf(file: string): Promise<string> {
  return digestOfOpened(await openPath(file, 'r'))
}

/** Told how many bytes of a file have been read, block by block. */
export type OnBytes = (bytes: number) => void

/** SHA-256 of an open file, hexadecimal. Closes it. */
export async function digestOfOpened(fd: number, onBytes?: OnBytes): Promise<string> {
  try {
    return await readOpened(fd, async ({ length }) => onBytes?.(length))
  } finally {
    await closeFd(fd)
  }
}

/**
 * Copies an open file, which may have lost its name, to a new one with the same time of change. The copy is durable and
 * has been read again when the promise resolves.
 * @returns SHA-256, hexadecimal
 * @throws Error when the copy differs
 */
export async function copyOpened(fd: number, to: string, onBytes?: OnBytes): Promise<string> {
  const { atimeMs, mtimeMs } = await statFd(fd)
  const handle = await open(to, 'wx', 0o600)
  let digest: string
  try {
    digest = await readOpened(fd, async (block) => {
      await handle.writeFile(block)
      onBytes?.(block.length)
    })
    await handle.utimes(atimeMs / 1000, mtimeMs / 1000)
    await handle.sync()
  } finally {
    await handle.close()
  }
  if ((await digestOf(to)) !== digest) throw new Error(`${to} does not have the bytes that were written to it.`)
  return digest
}

/** Reads an open file from its start. Resolves with its SHA-256. @param take gets blocks whose memory is used again */
export async function readOpened(fd: number, take: (block: Buffer) => Promise<void>): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(BLOCK)
  for (let position = 0; ; ) {
    const { bytesRead } = await readFd(fd, buffer, 0, BLOCK, position)
    if (bytesRead === 0) return hash.digest('hex')
    const block = buffer.subarray(0, bytesRead)
    hash.update(block)
    await take(block)
    position += bytesRead
  }
}
