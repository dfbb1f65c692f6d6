import { open } from 'node:fs/promises'

/** Puts on the disk which files a folder has: what was made, renamed or removed in it before the call is so for good once this resolves. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
