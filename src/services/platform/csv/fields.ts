import { CID } from 'multiformats/cid'
import { parsePrice } from '../units/price.js'
import type { columns, TaskRow } from './task-row.js'

type Column = (typeof columns)[number][0]

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const MAX_URL = 2048
const MAX_NAME = 1024

/** What a field holds: its value, or undefined when the text is not of this kind. */
interface Kind<T> {
  readonly expected: string
  read(text: string): T | undefined
}

const uuid: Kind<string> = {
  expected: 'a UUID',
  read: (text) => (UUID.test(text.toLowerCase()) ? text.toLowerCase() : undefined),
}
const cid: Kind<string> = { expected: 'a CID', read: (text) => (isCid(text) ? text : undefined) }
const wholeNumber: Kind<number> = {
  expected: 'a whole number',
  read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
}

/** The kind of each column's fields. No empty text is given to them. */
export const kinds: { readonly [Name in Column]: Kind<string> | Kind<number> } = {
  uuid,
  source_file_name: {
    expected: `a name of at most ${MAX_NAME} characters`,
    read: (text) => (text.length <= MAX_NAME ? text : undefined),
  },
  miner_id: { expected: 'the id of a storage provider', read: (text) => (isMinerId(text) ? text : undefined) },
  deal_cid: cid,
  payload_cid: cid,
  file_source_url: {
    expected: `an http or https URL of at most ${MAX_URL} characters, without a password`,
    read: (text) => (isWebUrl(text) ? text : undefined),
  },
  md5: {
    expected: 'an MD5 of 32 hexadecimal digits',
    read: (text) => (/^[0-9a-f]{32}$/i.test(text) ? text.toLowerCase() : undefined),
  },
  start_epoch: wholeNumber,
  piece_cid: cid,
  file_size: { expected: 'a number of bytes', read: wholeNumber.read },
  cost: { expected: 'a decimal number of fil', read: (text) => (parsePrice(text) === undefined ? undefined : text) },
}

/** Members that a column must have a value for. */
export const required: ReadonlySet<keyof TaskRow> = new Set(['fileSourceUrl'] as const)

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** True for the form of an actor's id or a libp2p peer id; whether there is such a provider is another question. */
export function isMinerId(text: string): boolean {
  return /^[a-zA-Z0-9]{2,128}$/.test(text)
}

function isCid(text: string): boolean {
  if (text.length > 256) return false
  try {
    CID.parse(text)
    return true
  } catch {
    return false
  }
}

/** Anyone may read the URLs of a public task: they hold no password. */
function isWebUrl(text: string): boolean {
  if (text.length > MAX_URL || !URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}
