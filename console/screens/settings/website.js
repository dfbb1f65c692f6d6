import { formatCount } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Choice, one, Text } from './inputs.js'
import { Single } from './single.js'

const REDIRECT = 'RedirectAllRequestsTo'
const WAYS = [
  ['pages', 'Shows the objects as pages'],
  ['redirect', 'Redirects everything to another host'],
]
const PROTOCOLS = [
  ['', 'As it was asked'],
  ['http', 'http'],
  ['https', 'https'],
]

function Fields({ value }) {
  const to = value.child(REDIRECT)
  const [way, setWay] = useState(to ? 'redirect' : 'pages')
  const rules = value.child('RoutingRules')?.all('RoutingRule').length ?? 0
  const pages = html`<${Text} label="Index document" hint="Answers for a folder, such as index.html." name="Suffix" required defaultValue=${value.get('IndexDocument', 'Suffix') ?? 'index.html'} />
    <${Text} label="Error document" hint="A key, such as error.html. Empty: a plain page with the code." name="Key" defaultValue=${value.get('ErrorDocument', 'Key')} />
    ${rules > 0 && html`<p class="quiet">${formatCount(rules, 'routing rule')} stay as they are: the XML has them.</p>`}`
  const redirect = html`<${Text} label="Host" hint="Such as www.example.com." name="HostName" required defaultValue=${to?.get('HostName')} />
    <${Choice} label="Protocol" name="Protocol" of=${PROTOCOLS} chosen=${to?.get('Protocol') ?? ''} />`
  return html`<${Choice} label="What the website does" name="way" of=${WAYS} chosen=${way} onChange=${(event) => setWay(event.target.value)} />
    ${way === 'pages' ? pages : redirect}`
}

/** A bucket as a website. */
export const website = {
  name: 'Website',
  query: 'website',
  root: 'WebsiteConfiguration',
  absent: 'NoSuchWebsiteConfiguration',
  hint: 'A website has an address of its own and is read without a signature: a policy must allow it. The server must have been started with a port for websites.',
  View: Single,
  Fields,
  change(root, values) {
    const put = (name, child, texts) =>
      root.replace(
        name,
        texts.map((text) => new Element(name, [new Element(child, text)])),
      )
    if (values.get('way') === 'pages') {
      root.replace(REDIRECT, [])
      put('IndexDocument', 'Suffix', [values.get('Suffix').trim()])
      put('ErrorDocument', 'Key', one(values, 'Key'))
      return
    }
    const to = root.child(REDIRECT) ?? new Element(REDIRECT)
    to.replace('HostName', [values.get('HostName').trim()])
    to.replace('Protocol', one(values, 'Protocol'))
    root.children = [to]
  },
}
