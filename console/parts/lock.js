import { html } from '../lib/html.js'
import { describeLock, describeLockShortly, isLocked } from '../lib/locks.js'
import { Badge } from './state.js'

/**
 * How a version is locked: a word with a shape, and until when.
 * @param lock what `lockOf` returns; @param short for a column of a table: the title has the rest
 */
export function LockState({ lock, short }) {
  if (!isLocked(lock)) return html`<span class="quiet">none</span>`
  const words = describeLock(lock)
  if (short) return html`<span title=${words}><${Badge} shape="▣">${describeLockShortly(lock)}<//></span>`
  return html`<${Badge} shape="▣">Locked<//> ${words.slice('Locked '.length)}`
}

/** What a version is among those of its key: a word with a shape. @param version of `listVersions` */
export function VersionState({ version: { deleted, latest } }) {
  if (deleted && latest) return html`<${Badge} kind="bad" shape="✕">Deleted<//>`
  if (deleted) return html`<${Badge} shape="✕">Delete marker<//>`
  return latest ? html`<${Badge} kind="good" shape="●">Current<//>` : html`<${Badge} shape="○">Earlier<//>`
}
