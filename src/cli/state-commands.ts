import { createLogger } from '../common/log.js'
import { acceptLoss } from '../state/open-backend.js'
import type { Config } from './config/config.js'
import type { Changed } from './running.js'

const ACCEPTED =
  'The state store is accepted as it is. Running servers go on with it within ten seconds. Set public access blocks, lifecycle rules, CORS and tags again, and find out which deals were made before you ask for them again.\n'
const NOTHING = 'The state store is the one that belongs to the data folder: there is nothing to accept.\n'

export async function acceptState(config: Config): Promise<Changed> {
  const accepted = await acceptLoss({
    data: config.data,
    url: config.state,
    timeoutMs: config.stateTimeoutMs,
    log: createLogger({ level: 'silent' }),
  })
  process.stdout.write(accepted ? ACCEPTED : NOTHING)
  return {}
}
