import { sendJson } from '../lib/api.js'
import { formatCount } from '../lib/format.js'
import { html, useEffect, useRef, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Copied, copyText } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Field } from '../parts/form.js'
import { Problem } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { Filters, Words } from '../parts/pages.js'
import { Badge } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Bytes, Time } from '../parts/time.js'

/** How long after an answer the next one is asked for, and at most after failures, ms. */
const AGAIN_MS = 2000
const AGAIN_AT_MOST_MS = 30_000
/** Rows that are kept. */
const ROWS = 500
const FIRST = 200

const STATUSES = ['2xx', '3xx', '4xx', '403', '404', '5xx']
const FILTERS = ['status', 'operation', 'bucket', 'prefix', 'caller']

/** What is asked of the server now, and who is refused, and why. */
export function Requests({ query }) {
  const filter = Object.fromEntries(FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])))
  const [paused, setPaused] = useState(false)
  const [shown, setShown] = useState()
  const { rows, error, lost, silent, again } = useRequests(filter, paused)
  const only = (more) => linkTo(['requests'], { ...filter, ...more })
  const actions = html`<button type="button" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? 'Go on' : 'Pause'}</button>`
  const menu = {
    label: ({ Operation, RequestId }) => `Actions on ${Operation} ${RequestId}`,
    items: (row) => [
      { text: 'Details…', action: () => setShown(row) },
      { text: 'Copy the request id', action: () => copyText(row.RequestId, 'the request id') },
      row.Bucket && { text: 'Only this bucket', href: only({ bucket: row.Bucket }) },
      { text: 'Only this caller', href: only({ caller: callerOf(row) }) },
      { text: 'Only this operation', href: only({ operation: row.Operation }) },
      row.Bucket &&
        row.Key && { text: 'Open the object', href: linkTo(['buckets', row.Bucket, 'object'], { key: row.Key }) },
      row.Action && row.Bucket && { text: 'Who may?', href: whoMay(row) },
    ],
  }
  return html`<${Page} title="Live requests" actions=${actions}>
    <${Filters} query=${query} to=${['requests']}>
      <${Field} label="Status" kind="select" input=${{ name: 'status' }}>
        <option value="">All</option>
        ${STATUSES.map((one) => html`<option value=${one} selected=${one === filter.status}>${one}</option>`)}
      <//>
      <${Words} label="Operation" name="operation" value=${filter.operation} />
      <${Words} label="Bucket" name="bucket" value=${filter.bucket} />
      <${Words} label="Key begins with" name="prefix" value=${filter.prefix} />
      <${Words} label="Caller" name="caller" value=${filter.caller} />
    <//>
    ${error && html`<${Problem} error=${error} retry=${again} />`}
    ${
      rows &&
      html`<p class="quiet">
        ${formatCount(rows.length, 'request')}, the newest first. ${paused ? 'Paused: what comes meanwhile is shown later.' : 'New ones appear by themselves.'}
        ${lost && ' Some were no longer kept.'} ${silent > 0 && ` ${formatCount(silent, 'process', 'processes')} of the server did not answer.`}
        ${Object.keys(filter).length > 0 && html` <a href=${linkTo(['requests'])}>Show all</a>`}
      </p>
      <${Table} caption="Requests" rows=${rows} keyOf=${({ RequestId }) => RequestId} columns=${columns(only)} menu=${menu} empty="No such request has come since the server was started." />`
    }
    ${!rows && !error && html`<p class="quiet" role="status">Loading…</p>`}
    ${shown && html`<${Details} of=${shown} onClose=${() => setShown(undefined)} />`}
  <//>`
}

/**
 * The last requests, the newest first, and what comes while the page is seen.
 * @returns { rows?, error?, lost, silent, again }
 */
function useRequests(filter, paused) {
  const client = session.value
  const words = JSON.stringify(filter)
  const [state, setState] = useState({})
  const [turn, setTurn] = useState(0)
  const kept = useRef({})
  // An effect ends some time after what it depends on is shown.
  const isPaused = useRef(paused)
  isPaused.current = paused
  useEffect(() => {
    if (paused) return
    const abort = new AbortController()
    let timer
    let failures = 0
    if (kept.current.words !== words) {
      kept.current = { words }
      setState({})
    }
    const later = (ms) => {
      timer = setTimeout(read, ms)
    }
    const read = async () => {
      if (document.hidden) return later(AGAIN_MS)
      const { after } = kept.current
      const query = { ...JSON.parse(words), after, max: after ? 1000 : FIRST }
      try {
        const answer = await sendJson(client, { path: '/-/requests/v1', query, signal: abort.signal })
        // It is read again, by what came in its place.
        if (abort.signal.aborted) return
        if (isPaused.current) return later(AGAIN_MS)
        kept.current.after = answer.After
        failures = 0
        setState(({ rows = [], lost }) => ({
          rows: [...answer.Requests.reverse(), ...rows].slice(0, ROWS),
          ...{ lost: lost || answer.Lost, silent: answer.Silent },
        }))
        later(answer.More ? 0 : AGAIN_MS)
      } catch (error) {
        if (abort.signal.aborted) return
        setState((old) => ({ ...old, error }))
        // A refusal stays one; a server that cannot answer may come back.
        if (error.status === 0 || error.status >= 500) later(Math.min(AGAIN_MS * 2 ** ++failures, AGAIN_AT_MOST_MS))
      }
    }
    read()
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [client, words, paused, turn])
  return { ...state, again: () => setTurn((n) => n + 1) }
}

function columns(only) {
  return [
    { name: 'Time', cell: ({ Time: time }) => html`<${Clock} of=${time} />` },
    { name: 'Status', cell: (row) => html`<${Status} of=${row} />` },
    { name: 'Request', rest: true, cell: (row) => html`<${What} of=${row} only=${only} />` },
    {
      name: 'Caller',
      cell: (row) => html`<a href=${only({ caller: callerOf(row) })}><${Caller} of=${row} /></a>`,
    },
    {
      name: 'ms',
      number: true,
      cell: ({ Milliseconds }) => Milliseconds.toLocaleString(undefined, { maximumFractionDigits: 0 }),
    },
    { name: 'In', number: true, cell: ({ BytesIn }) => html`<${Bytes} of=${BytesIn} />` },
    { name: 'Out', number: true, cell: ({ BytesOut }) => html`<${Bytes} of=${BytesOut} />` },
  ]
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

function Clock({ of }) {
  const time = new Date(of)
  if (Number.isNaN(time.getTime())) return html`<${Name} text=${of} />`
  return html`<time datetime=${of} title=${time.toLocaleString()}>${clock.format(time).replace(/\p{Cf}/gu, '')}</time>`
}

/** A code of an error, with places to break between its words. */
function Parts({ of }) {
  const words = of.split(/(?<=[a-z])(?=[A-Z])/)
  return words.map((word, i) => html`${i > 0 && html`<wbr />`}<${Name} text=${word} />`)
}

/** A status by its number, a word and a shape. */
export function Status({ of: { Status: status, Error: code, Cut: cut } }) {
  const [shape, kind, word] =
    status >= 500
      ? ['✕', 'bad', 'failed']
      : status === 403
        ? ['⊘', 'bad', 'refused']
        : status >= 400
          ? ['△', 'wait', 'not done']
          : status >= 300
            ? ['→', '', status === 304 ? 'not modified' : 'elsewhere']
            : ['●', 'good', 'done']
  return html`<${Badge} kind=${cut ? 'wait' : kind} shape=${shape}>${status || '–'} ${code ? html`<${Parts} of=${code} />` : word}${cut && ', cut short'}<//>`
}

function What({ of, only }) {
  const { Operation: operation, Bucket: bucket, Key: key, Reason: reason } = of
  return html`<${Name} text=${operation} />
    ${bucket && html` <a href=${only({ bucket })} title="Only this bucket"><${Name} text=${bucket} /></a>`}
    ${key && html` / <a href=${linkTo(['buckets', bucket, 'object'], { key })}><${Name} text=${key} /></a>`}
    ${reason && html`<div><span class="quiet">Why: </span><${Reason} of=${of} /></div>`}`
}

/** Why a request was refused, with the way to ask again. */
function Reason({ of }) {
  const reason = html`<${Name} text=${of.Reason} />`
  return of.Action && of.Bucket ? html`<a href=${whoMay(of)} title="Ask who may">${reason}</a>` : reason
}

/** As the filter takes it. */
function callerOf({ AccessKeyId: id, Account: account }) {
  return id ?? account ?? '-'
}

function Caller({ of: { AccessKeyId: id, Account: account } }) {
  if (id) return html`<${Name} text=${id} />`
  return account ? html`account <${Name} text=${`${account.slice(0, 8)}…`} />` : 'unsigned'
}

/** The form of the call that decides again, filled in. */
function whoMay({ Bucket, Key, Action, AccessKeyId }) {
  return linkTo(['calls', 'access_GetDecision_GET'], { Bucket, key: Key, action: Action, 'access-key-id': AccessKeyId })
}

function Details({ of, onClose }) {
  const place = of.Bucket && `${of.Bucket}${of.Key ? `/${of.Key}` : ''}`
  return html`<${Dialog} title=${of.Operation} onClose=${onClose}>
    <${Facts}
      facts=${[
        ['Request', html`<${Copied} text=${of.RequestId} what="the request id" />`],
        ['Time', html`<${Time} of=${of.Time} exact />`],
        ['Status', html`<${Status} of=${of} />`],
        ['Of', place],
        ['Plugin', of.Plugin],
        ['Refused action', of.Action],
        ['Reason', of.Reason && html`<${Reason} of=${of} />`],
        ['Caller', of.AccessKeyId ?? (of.Account ? undefined : 'no valid signature')],
        ['Session', of.Session],
        ['Account', of.Account && html`<${Copied} text=${of.Account} what="the account" />`],
        ['Address', of.Address],
        ['Program', of.UserAgent],
        ['Took', `${of.Milliseconds} ms`],
        ['Bytes in', html`<${Bytes} of=${of.BytesIn} />`],
        ['Bytes out', html`<${Bytes} of=${of.BytesOut} />`],
      ]}
    />
    <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div>
  <//>`
}
