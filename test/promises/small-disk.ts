import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { whenWeEnd } from '../support/server/child.js'

interface Mounted {
  readonly folder: string
  unmount(): void
}

/** Mounts a file system of 24 MiB; undefined where this account may not. */
function mountSmall(): Mounted | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-full-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    rmdirSync(folder)
    return undefined
  }
  return {
    folder,
    unmount() {
      if (!existsSync(folder)) return
      execFileSync('umount', ['-l', folder])
      rmdirSync(folder)
    },
  }
}

/** Why there can be no small disk here; false where there can. */
export function noSmallDisk(): string | false {
  const probe = mountSmall()
  probe?.unmount()
  return probe ? false : 'this account may not mount a file system'
}

/** The folder of a file system of 24 MiB of this test's own. */
export function smallDisk(t: Test): string {
  const disk = mountSmall()
  if (!disk) throw new Error('no file system can be mounted')
  const forget = whenWeEnd(disk.unmount)
  t.teardown(() => {
    forget()
    disk.unmount()
  })
  return disk.folder
}

/** Leaves so many bytes free on the file system of the folder. The files that it makes begin with `filler-`. */
export function fill(folder: string, leave = 0): void {
  const hole = join(folder, 'hole')
  writeFileSync(hole, Buffer.alloc(leave))
  const file = join(folder, `filler-${process.hrtime.bigint()}`)
  const { bavail, bsize } = statfsSync(folder)
  try {
    for (let left = bavail * bsize; left > 0; left = statfsSync(folder).bavail * bsize + bsize)
      writeFileSync(file, Buffer.alloc(Math.max(bsize, Math.floor(left / 2))), { flag: 'a' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    rmSync(hole)
  }
}
/** Removes what `fill` has made. */
export function unfill(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('filler-')) rmSync(join(folder, name))
}
