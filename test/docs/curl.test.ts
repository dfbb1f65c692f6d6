import { readFileSync } from 'node:fs'
import t from 'tap'
import { pages } from './pages.js'

// Without -s, curl shows its progress between the lines of a guide as soon as its output is no terminal.
t.test('curl is silent in every block of commands', async (t) => {
  let seen = 0
  for (const page of pages) {
    const blocks = readFileSync(page, 'utf8').match(/^```\w*\n[\s\S]*?^```/gm) ?? []
    const lines = blocks
      .flatMap((block) => block.split('\n'))
      .filter((line) => /(?:^|\$ |\$\(|until |\| )curl /.test(line))
    seen += lines.length
    t.same(
      lines.filter((line) => /(?:^|\$ |\$\(|until |\| )curl (?!-s)/.test(line)),
      [],
      page,
    )
  }
  t.ok(seen > 40, `${seen} lines`)
})
