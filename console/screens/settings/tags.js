import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { PairsForm } from '../../parts/pairs.js'
import { textOf } from './documents.js'

const tagsOf = (root) => (root.child('TagSet')?.all('Tag') ?? []).map((tag) => [tag.get('Key'), tag.get('Value') ?? ''])

/** The document of tags; undefined for none. @param pairs [[name, value]] */
export function taggingOf(pairs) {
  if (pairs.length === 0) return undefined
  const set = pairs.map(([name, value]) => new Element('Tag', [new Element('Key', name), new Element('Value', value)]))
  return new Element('Tagging', [new Element('TagSet', set)])
}

function Tags({ kind, value, store }) {
  return html`<${PairsForm} pairs=${tagsOf(value)} word="tag" save=${(pairs) => store(textOf(kind, taggingOf(pairs)))} />`
}

export const tags = {
  name: 'Tags',
  query: 'tagging',
  root: 'Tagging',
  absent: 'NoSuchTagSet',
  isNone: (text) => !text.includes('<Tag>'),
  hint: 'Words of your own, such as a cost centre. Everybody who may read the settings sees them.',
  View: Tags,
}
