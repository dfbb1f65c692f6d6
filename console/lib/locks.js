// Object lock: what protects a version, and what changes it. Each call takes the client, which `session.value` is.
import { sendXml } from './api.js'
import { bypassing } from './delete.js'
import { formatDay, formatTime } from './format.js'
import { without, writeDocument } from './s3.js'
import { element } from './xml.js'

/** The lock in the headers of HEAD, as far as the caller may know it. @returns { mode?, until?, hold } */
export function lockOf(headers) {
  const mode = headers.get('x-amz-object-lock-mode') ?? undefined
  return {
    ...(mode !== undefined && { mode, until: Date.parse(headers.get('x-amz-object-lock-retain-until-date')) }),
    hold: headers.get('x-amz-object-lock-legal-hold') === 'ON',
  }
}

/** True for a retention that has not ended. */
export function isRetained({ mode, until }) {
  return mode !== undefined && !(until <= Date.now())
}

export function isLocked(lock) {
  return lock.hold || isRetained(lock)
}

/** How a version is locked, in words; undefined if it is not. */
export function describeLock(lock) {
  const words = [
    ...(isRetained(lock) ? [`until ${formatTime(lock.until)} (${lock.mode})`] : []),
    ...(lock.hold ? ['by a legal hold'] : []),
  ]
  return words.length > 0 ? `Locked ${words.join(' and ')}` : undefined
}

/** The same for a column of a table. */
export function describeLockShortly(lock) {
  const end = isRetained(lock) ? ` until ${formatDay(lock.until)}` : ''
  return lock.hold ? `Locked${end}${end === '' ? ':' : ','} legal hold` : `Locked${end}`
}

/** Why a version cannot be deleted. @returns { text, bypass }: `bypass` is true if that can be passed by */
export function whyKept(lock) {
  const { mode, until, hold } = lock
  const end = formatTime(until)
  const held = 'It is under a legal hold, which has no end: end the hold first, on the screen of this version.'
  if (hold && isRetained(lock))
    return { text: `${held} It also has a retention until ${end} (${mode}).`, bypass: false }
  if (hold) return { text: held, bypass: false }
  if (mode === 'COMPLIANCE')
    return {
      text: `It is retained in COMPLIANCE mode until ${end}: before that, nobody can delete it, not even the owner.`,
      bypass: false,
    }
  return {
    text: `It is retained in GOVERNANCE mode until ${end}. Who has the action s3:BypassGovernanceRetention may pass that by.`,
    bypass: true,
  }
}

/**
 * The retention that new objects of a bucket get. @returns { mode?, days?, years? }, {} for none; undefined for a bucket
 * without object lock
 */
export async function lockRuleOf(client, bucket, signal) {
  const root = await sendXml(client, { bucket, query: { 'object-lock': '' }, signal }).catch(
    without('ObjectLockConfigurationNotFoundError', 'AccessDenied', 'NotImplemented'),
  )
  if (root === undefined) return undefined
  const [mode, days, years] = ['Mode', 'Days', 'Years'].map((name) => root.get('Rule', 'DefaultRetention', name))
  return mode === undefined ? {} : { mode, days, years }
}

/**
 * Sets or ends the retention of a version.
 * @param place { bucket, key, versionId? }
 * @param retention { mode, until }, `until` in ms since 1970; undefined ends it
 * @param options { bypass?, reason? }
 */
export async function writeRetention(client, place, retention, options, signal) {
  const members = retention && [
    element('Mode', retention.mode),
    element('RetainUntilDate', new Date(retention.until).toISOString()),
  ]
  const body = element('Retention', members ?? [])
  await writeDocument(client, { ...place, ...bypassing(options), signal }, 'retention', body)
}

/** Sets or ends the legal hold of a version. @param reason stands in the log of the bucket, if it has one */
export async function writeHold(client, place, hold, reason, signal) {
  const body = element('LegalHold', [element('Status', hold ? 'ON' : 'OFF')])
  await writeDocument(client, { ...place, ...bypassing({ reason }), signal }, 'legal-hold', body)
}
