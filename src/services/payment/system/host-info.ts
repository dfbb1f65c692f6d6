import { readFileSync } from 'node:fs'
import { arch, availableParallelism, platform } from 'node:os'
import { join } from 'node:path'
import { packageFolder } from '../../../common/files/package-folder.js'

const NANOSECONDS = 1e6

/** GET /common/host/info: the machine and the process that answer. */
export function hostInfo(): object {
  return {
    version: version(),
    operating_system: platform(),
    architecture: arch(),
    cpu_number: availableParallelism(),
    // A number of JSON; as a double it is exact to a quarter of a microsecond.
    current_unix_nano: Math.round((performance.timeOrigin + performance.now()) * NANOSECONDS),
  }
}

function version(): string {
  return JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8')).version
}
