import { open, unlink } from 'node:fs/promises'
import { sectionsOf } from '../pack/car-sections.js'
import type { Faults } from './faults.js'

/** What a block that is overwritten begins with. The same each time, so that damage done twice does not undo itself. */
const PATTERN = Buffer.from('db5ac3967e11a4f0', 'hex')

/** Does to a CAR what the faults of its provider do to data. A CAR that is gone is no error. */
export async function applyFaults(car: string, minerId: string, faults: Faults): Promise<void> {
  try {
    if (faults.has(minerId, 'losesData')) await unlink(car)
    else if (faults.has(minerId, 'corruptsData')) await corrupt(car)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Overwrites the first bytes of every block, on the disk; the CAR stays one that can be read. */
async function corrupt(car: string): Promise<void> {
  const file = await open(car, 'r+')
  try {
    for await (const { blockOffset, end } of sectionsOf(file)) {
      await file.write(PATTERN, 0, Math.min(PATTERN.length, end - blockOffset), blockOffset)
    }
    await file.datasync()
  } finally {
    await file.close()
  }
}
