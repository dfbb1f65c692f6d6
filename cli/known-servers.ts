import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { makeFolders, writePrivateFile } from '../common/files/private-file.js'
import { variable } from './config/config.js'
import { isRunning, type RunningServer, runningServer } from './running-server.js'

const knownServer = runningServer.extend({ data: z.string() })

type KnownServer = z.infer<typeof knownServer>

/**
 * Lists a server among those of this user, so that a command in another folder can name it. Nothing is sent to it for
 * that. A machine without such a place has no list.
 * @returns removes it from the list
 */
export function listServer(data: string, server: RunningServer): () => void {
  const folder = listOfUser()
  const file = join(folder, `${server.pid}.json`)
  try {
    makeFolders(folder)
    if (!isOwn(folder)) return () => {}
    forgetEnded(folder)
    writePrivateFile(file, `${JSON.stringify({ ...server, data: resolve(data) })}\n`)
  } catch {
    return () => {}
  }
  return () => rmSync(file, { force: true })
}

/** The servers of this user that run on this machine, in the order of their process numbers. */
export function serversOfUser(): readonly KnownServer[] {
  const folder = listOfUser()
  try {
    return isOwn(folder) ? entries(folder).flatMap(({ server }) => (server && isRunning(server) ? server : [])) : []
  } catch {
    return []
  }
}

function listOfUser(): string {
  return join(variable('XDG_RUNTIME_DIR') ?? tmpdir(), `dealgate-${process.getuid?.() ?? 'servers'}`)
}

/** Others can write beside it where it is in `/tmp`. */
function isOwn(folder: string): boolean {
  const facts = lstatSync(folder)
  return facts.isDirectory() && (process.getuid === undefined || facts.uid === process.getuid())
}

interface Entry {
  readonly file: string
  /** Undefined for a file that is none of these. */
  readonly server: KnownServer | undefined
}

function entries(folder: string): readonly Entry[] {
  return readdirSync(folder)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => {
      const file = join(folder, name)
      try {
        return { file, server: knownServer.parse(JSON.parse(readFileSync(file, 'utf8'))) }
      } catch {
        return { file, server: undefined }
      }
    })
}

/** A server that was killed leaves its entry. */
function forgetEnded(folder: string): void {
  for (const { file, server } of entries(folder)) if (server && !isRunning(server)) rmSync(file, { force: true })
}
