import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { BODIES } from '../../services/backup/gateway-bodies.js'

/** What no backup needs: bodies while they are received, CARs while they are made, the space for a full disk. */
const LEFT_OUT: readonly RegExp[] = [
  /^spool$/,
  /^services\/(network|kubo|payment)\/staging$/,
  /^services\/payment\/packing$/,
  new RegExp(`^services/${posix(BODIES)}$`),
  /(^|\/)(lock|lock\.sqlite|worker-\d+\.sqlite)$/,
  /-(wal|shm|journal)$/,
  /\.(reserve|new)$/,
]

const DATABASE = /\.db$|(^|\/)records\.sqlite$/

export interface DataTree {
  /** Paths below the data folder. */
  readonly databases: readonly string[]
  readonly files: readonly string[]
}

/** Lists the data folder, without the bodies of objects, of which the index of the gateway tells. Synchronous. */
export function listData(data: string): DataTree {
  const databases: string[] = []
  const files: string[] = []
  const walk = (folder: string): void => {
    for (const entry of entriesOf(join(data, folder))) {
      const path = join(folder, entry.name)
      if (LEFT_OUT.some((pattern) => pattern.test(posix(path)))) continue
      const kind = followed(join(data, path), entry)
      if (kind?.isDirectory()) walk(path)
      else if (DATABASE.test(path)) databases.push(path)
      else if (kind?.isFile()) files.push(path)
    }
  }
  walk('')
  return { databases, files }
}

/** Empty for a folder that has just been removed. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Links lead to other disks, or to secrets; undefined for a broken one. */
function followed(path: string, entry: Dirent): Pick<Dirent, 'isFile' | 'isDirectory'> | undefined {
  return entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry
}

function posix(path: string): string {
  return path.split(sep).join('/')
}
