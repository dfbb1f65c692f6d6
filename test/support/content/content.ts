import { createCipheriv, createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export const KiB = 1024
export const MiB = 1024 * KiB

/** Bytes that look random and are the same for the same seed. */
export function bytes(seed: string, size: number): Buffer {
  const key = createHash('md5').update(seed).digest()
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size))
}

export const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex')

export function md5(data: Uint8Array | string): string {
  return createHash('md5').update(data).digest('hex')
}

/** The header that S3 wants with a list of keys to delete. */
export function contentMd5(data: Uint8Array | string): { 'content-md5': string } {
  return { 'content-md5': createHash('md5').update(data).digest('base64') }
}

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

export async function writeTree(folder: string, files: Readonly<Record<string, Buffer>>): Promise<void> {
  for (const [path, data] of Object.entries(files)) {
    const file = join(folder, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, data)
  }
}

/** SHA-256 of every file by path relative to `folder`. */
export async function hashTree(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const hashes: Record<string, string> = {}
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    hashes[path.slice(folder.length + 1)] = sha256(await readFile(path))
  }
  return hashes
}

export function hashesOf(files: Readonly<Record<string, Buffer>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([path, data]) => [path, sha256(data)]))
}
