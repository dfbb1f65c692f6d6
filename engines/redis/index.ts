import type { OpenEngine } from '../../src/state/backend.js'
import { openRedisBackend } from './backend.js'

export default openRedisBackend satisfies OpenEngine
