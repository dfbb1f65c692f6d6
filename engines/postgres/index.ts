import type { OpenEngine } from '../../src/state/backend.js'
import { openPostgresBackend } from './backend.js'

export default openPostgresBackend satisfies OpenEngine
