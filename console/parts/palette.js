// Goes to a screen, a bucket or a call by a part of its name: loaded when it is first wanted.
import { sendJson } from '../lib/api.js'
import { html, useEffect, useMemo, useState } from '../lib/html.js'
import { linkTo, matchPath, route } from '../lib/router.js'
import { listBuckets } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { BUCKET_TABS, SETTINGS_TABS } from '../screens/bucket-tabs.js'
import { screens } from '../screens.js'
import { useModal } from './dialog.js'
import { useLoaded } from './load.js'
import { Middle } from './name.js'

/** Rows that are shown: who wants another one types more of it. */
const SHOWN = 40

const SCREENS = screens.flatMap(({ path, nav, name = nav, group }) =>
  name ? [{ text: name, kind: group, href: `#${path}` }] : [],
)

/** What the server has no answer to, or does not allow, leaves the rest of the list as it is. */
const orNothing = (reading) => reading.catch(() => [])

export function Palette({ onClose }) {
  const client = session.value
  const ref = useModal()
  const [words, setWords] = useState('')
  const [at, setAt] = useState(0)
  const buckets = useLoaded((signal) => orNothing(bucketEntries(client, signal)), [client])
  const calls = useLoaded((signal) => orNothing(callEntries(client, signal)), [client])
  const all = useMemo(
    () => [...tabsOfBucket(route.peek().path), ...SCREENS, ...(buckets.value ?? []), ...(calls.value ?? [])],
    [buckets.value, calls.value],
  )
  const found = useMemo(() => matching(all, words).slice(0, SHOWN), [all, words])
  const chosen = Math.min(at, found.length - 1)
  useEffect(
    () => ref.current.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }),
    [chosen, found],
  )
  const go = ({ href }) => {
    onClose()
    location.hash = href
  }
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter' && found[chosen]) go(found[chosen])
    else if (step && found.length > 0) setAt((chosen + step + found.length) % found.length)
    else return
    event.preventDefault()
  }
  const type = ({ target }) => {
    setWords(target.value)
    setAt(0)
  }
  return html`<dialog ref=${ref} class="palette" aria-label="Go to" onClose=${onClose} onClick=${(event) => event.target === ref.current && onClose()}>
    <input
      type="text"
      role="combobox"
      aria-label="Name of a screen, bucket or call"
      aria-expanded="true"
      aria-controls="palette-list"
      aria-autocomplete="list"
      aria-activedescendant=${found.length > 0 ? `palette-${chosen}` : undefined}
      placeholder="Screen, bucket or call"
      autocomplete="off"
      spellcheck=${false}
      value=${words}
      onInput=${type}
      onKeyDown=${onKey}
    />
    <div role="listbox" id="palette-list" aria-label="Places">
      ${found.map(
        (
          entry,
          i,
        ) => html`<div role="option" id=${`palette-${i}`} aria-selected=${i === chosen} onClick=${() => go(entry)}>
          <${Middle} text=${entry.text} /><span class="quiet">${entry.kind}</span>
        </div>`,
      )}
    </div>
    <p class=${found.length > 0 ? 'unseen' : 'quiet'} role="status">
      ${found.length > 0 ? `${found.length} places` : buckets.loading || calls.loading ? 'Looking…' : 'There is no such place.'}
    </p>
  </dialog>`
}

/** The screens of the bucket that the address is of. */
function tabsOfBucket(path) {
  const [, name, encoded] = path.split('/')
  const params = name === 'buckets' && encoded && matchPath('/buckets/:bucket', `/buckets/${encoded}`)
  if (!params) return []
  const entry = (text, ...parts) => ({
    text: `${text} of ${params.bucket}`,
    kind: 'This bucket',
    href: linkTo(['buckets', params.bucket, ...parts]),
  })
  return [
    ...BUCKET_TABS.map(([tab, text]) => entry(text, tab)),
    entry('Versions', 'versions'),
    ...SETTINGS_TABS.filter(([page]) => page).map(([page, text]) => entry(`${text} settings`, 'settings', page)),
  ]
}

async function bucketEntries(client, signal) {
  const buckets = await listBuckets(client, signal)
  return buckets.map(({ name }) => ({ text: name, kind: 'Bucket', href: linkTo(['buckets', name, 'objects']) }))
}

async function callEntries(client, signal) {
  const { paths } = await sendJson(client, { path: '/-/openapi.json', signal })
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ operationId }) => operationId)
    .map(({ operationId, tags }) => ({
      text: operationId.split('_')[1],
      kind: `Call of ${tags[0]}`,
      href: linkTo(['calls', operationId]),
    }))
}

/** Entries that have all the words: first those that begin so, then those with a word that does, then the others. */
function matching(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return entries
  return entries
    .flatMap((entry) => {
      const name = entry.text.toLowerCase()
      if (!words.every((word) => name.includes(word) || entry.kind.toLowerCase().includes(word))) return []
      const rank = name.startsWith(words[0])
        ? 0
        : name.split(/[^a-z0-9]+/).some((part) => part.startsWith(words[0]))
          ? 1
          : 2
      return [{ entry, rank }]
    })
    .sort((one, other) => one.rank - other.rank)
    .map(({ entry }) => entry)
}
