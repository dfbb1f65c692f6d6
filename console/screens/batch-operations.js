import { html } from '../lib/html.js'
import { Check, Field } from '../parts/form.js'

const TERMS = [
  { name: 'MinerId', label: 'Provider', hint: 'Empty: the cheapest that fits.' },
  { name: 'Price', label: 'Price', hint: 'fil per epoch for the whole piece.' },
  { name: 'DurationEpochs', label: 'Duration in epochs', kind: 'number' },
]
const BYPASS = { name: 'BypassGovernance', label: 'Also what a retention in GOVERNANCE mode holds', kind: 'check' }

/**
 * What a batch job can do, by the names of the call. `does` completes "The job …"; `danger` for what cannot be undone, and
 * `costs` for what has a price. A field that is empty is left out.
 */
export const OPERATIONS = {
  Tag: {
    ...{ text: 'Tag', does: 'sets tags of each object' },
    fields: [
      { name: 'Tags', label: 'Tags', kind: 'tags', required: true, hint: 'One on each line: name=value.' },
      { name: 'Replace', label: 'Remove all other tags', kind: 'check' },
    ],
  },
  Untag: {
    ...{ text: 'Remove tags', does: 'removes tags of each object' },
    fields: [{ name: 'TagKeys', label: 'Names of tags', kind: 'lines', hint: 'One on each line. Empty: all tags.' }],
  },
  Copy: {
    ...{ text: 'Copy', does: 'copies each object, and replaces what has the same key there' },
    fields: [
      { name: 'TargetBucket', label: 'Into bucket', required: true },
      { name: 'TargetPrefix', label: 'Text before each key', hint: 'Such as copies/2026/.' },
      { name: 'StorageClass', label: 'Storage class', hint: 'Empty: that of the target.' },
    ],
  },
  Delete: { text: 'Delete', does: 'deletes each object', danger: true, fields: [BYPASS] },
  Restore: {
    ...{ text: 'Restore', does: 'brings the bytes of each object back from its deal', costs: true },
    fields: [
      { name: 'Days', label: 'Days', kind: 'number', hint: 'Empty: for good.' },
      { name: 'Tier', label: 'Tier', of: ['Standard', 'Bulk', 'Expedited'] },
    ],
  },
  Archive: {
    ...{ text: 'Archive', does: 'moves each object into a storage class of deals', danger: true, costs: true },
    fields: [{ name: 'StorageClass', label: 'Storage class', required: true, value: 'GLACIER' }],
  },
  Deal: { text: 'Make deals', does: 'makes a deal for each object', danger: true, costs: true, fields: TERMS },
  Renew: {
    ...{ text: 'Renew deals', does: 'makes a new deal on the terms of the newest one of each object' },
    ...{ danger: true, costs: true, fields: TERMS },
  },
  Retain: {
    ...{ text: 'Retain', does: 'keeps each object from being deleted until the time', danger: true },
    fields: [
      {
        ...{ name: 'Mode', label: 'Mode', of: ['GOVERNANCE', 'COMPLIANCE'], required: true },
        hint: 'Nobody can shorten COMPLIANCE, not even the owner.',
      },
      { name: 'RetainUntilDate', label: 'Until', kind: 'time', required: true },
      BYPASS,
    ],
  },
  LegalHold: {
    ...{ text: 'Legal hold', does: 'sets or ends the legal hold of each object' },
    fields: [{ name: 'Status', label: 'Hold', of: ['ON', 'OFF'], required: true }],
  },
  Acl: {
    ...{ text: 'Set ACL', does: 'replaces the ACL of each object' },
    fields: [
      {
        ...{ name: 'CannedAcl', label: 'ACL', required: true },
        of: ['private', 'public-read', 'authenticated-read', 'bucket-owner-read', 'bucket-owner-full-control'],
      },
    ],
  },
  Checksum: {
    ...{ text: 'Verify', does: 'reads each byte, and compares it with what is recorded' },
    fields: [{ name: 'Algorithm', label: 'For the report', of: ['SHA256', 'SHA1', 'CRC32', 'CRC32C', 'CRC64NVME'] }],
  },
  Encrypt: { text: 'Encrypt', does: 'encrypts each object with the key of the server', fields: [] },
  Rewrap: { text: 'Renew keys', does: 'stores the key of each encrypted object for the keys of today', fields: [] },
}

/** The fields of an operation, in a form. */
export function Parameters({ of }) {
  return OPERATIONS[of].fields.map(({ name, label, kind, hint, required = false, value, of: choices }) => {
    const input = { name: `p-${name}`, required, autocomplete: 'off', spellcheck: false }
    if (kind === 'check')
      return html`<${Check} key=${of + name} label=${label} hint=${hint} input=${{ name: input.name }} />`
    if (choices) {
      return html`<${Field} key=${of + name} label=${label} hint=${hint} kind="select" input=${input}>
        <option value="">${required ? 'Choose…' : 'Not stated'}</option>
        ${choices.map((one) => html`<option value=${one}>${one}</option>`)}
      <//>`
    }
    if (kind === 'tags' || kind === 'lines')
      return html`<${Field} key=${of + name} label=${label} hint=${hint} kind="textarea" input=${{ ...input, rows: 3 }} />`
    const type = { number: 'number', time: 'datetime-local' }[kind] ?? 'text'
    return html`<${Field} key=${of + name} label=${label} hint=${hint} input=${{ ...input, type, min: kind === 'number' ? 1 : undefined, defaultValue: value }} />`
  })
}

/** The parameters that a form states: a member of the order by the name of the operation; none where nothing is stated. */
export function parametersOf(operation, values) {
  const { fields } = OPERATIONS[operation]
  const stated = fields.flatMap(({ name, kind }) => {
    const text = values.get(`p-${name}`)?.trim() ?? ''
    if (text === '') return []
    if (kind === 'check') return [[name, true]]
    if (kind === 'number') return [[name, Number(text)]]
    if (kind === 'time') return [[name, new Date(text).toISOString()]]
    if (kind === 'lines') return [[name, linesOf(text)]]
    return [[name, kind === 'tags' ? linesOf(text).map(tagOf) : text]]
  })
  return stated.length > 0 ? { [operation]: Object.fromEntries(stated) } : {}
}

export function linesOf(text) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}

/** `name=value`; a value may have further signs. */
export function tagOf(line) {
  const at = line.indexOf('=')
  return at === -1 ? { Key: line, Value: '' } : { Key: line.slice(0, at).trim(), Value: line.slice(at + 1).trim() }
}
