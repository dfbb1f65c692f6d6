import type { OpenEngine } from '../../src/state/backend.js'
import { openSqliteBackend } from './backend.js'

export default openSqliteBackend satisfies OpenEngine
