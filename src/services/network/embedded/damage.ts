import { open, unlink } from 'node:fs/promises'
import { sectionsOf } from '../pack/car/car-sections.js'
import type { Faults } from './faults.js'

/** Start of a corrupted block. It is constant, so that corrupting a block twice does not restore it. */
const PATTERN = Buffer.from('db5ac3967e11a4f0', 'hex')

/** Applies the faults of a provider to a CAR. A missing CAR is no error. */
export async function applyFaults(car: string, minerId: string, faults: Faults): Promise<void> {
  try {
    if (faults.has(minerId, 'losesData')) await unlink(car)
    else if (faults.has(minerId, 'corruptsData')) await corrupt(car)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Overwrites the first bytes of every block on the disk. The CAR itself stays parsable. */
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
