import { open } from 'node:fs/promises'

/**
 * Makes the names in a folder durable, as fsync of a file makes its bytes: files that were created, renamed or removed
 * before the call stay so after a power failure (https://man7.org/linux/man-pages/man2/fsync.2.html, Description).
 */
export async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder for this and keeps names durable by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
