import { spawnSync } from 'node:child_process'

/** One command of a page, as a reader would paste it. */
export interface Command {
  /** Line of the page that it begins in, counted from 1. */
  readonly line: number
  readonly text: string
  /** What the page shows as its output; empty where it shows none. */
  readonly printed: string
  /** A comment `# once …` stands before it: the output comes after a time. */
  readonly awaited: boolean
}

interface Block {
  readonly language: string
  /** Line of the first line inside, counted from 1. */
  readonly line: number
  readonly lines: readonly string[]
}

const SHELL = new Set(['sh', 'bash', 'shell', 'console'])
const PROMPT = '$ '
const COMMENT = /^\s*#/

/**
 * All commands in the fenced blocks of a page of Markdown, in order. Throws an Error for a block that ends within a
 * command.
 */
export function commandsOf(page: string): Command[] {
  return blocksOf(page).flatMap((block) => {
    if (block.lines.some((line) => line.startsWith(PROMPT))) return withPrompts(block)
    return SHELL.has(block.language) ? withoutPrompts(block) : []
  })
}

/** A block of JavaScript in a page, by default the first. */
export function scriptOf(page: string, index = 0): string {
  const scripts = blocksOf(page).filter(({ language }) => language === 'js')
  return `${scripts[index]?.lines.join('\n') ?? ''}\n`
}

/**
 * Commands in running text, where nothing tries them: a client program with an address, a variable or a flag for one.
 */
export function inlineCommandsOf(page: string): string[] {
  const text = page.replace(/^ *```.*?^ *```/gms, '')
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span ?? '')
  return spans.filter((span) => /^(aws|curl|rclone|s3cmd|npx) .*(\$|--endpoint-url|:\/\/)/.test(span))
}

function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let open: { language: string; line: number; indent: number; lines: string[] } | undefined
  for (const [index, line] of page.split('\n').entries()) {
    const [, indent, language = ''] = /^( *)```(\w*)/.exec(line) ?? []
    if (indent === undefined) open?.lines.push(line.slice(open.indent))
    else if (open) {
      blocks.push(open)
      open = undefined
    } else open = { language, line: index + 2, indent: indent.length, lines: [] }
  }
  if (open) throw new Error(`the block of line ${open.line} has no end`)
  return blocks
}

function withoutPrompts({ line, lines }: Block): Command[] {
  const commands: Command[] = []
  for (let at = 0; at < lines.length; ) {
    const { text, next } = commandAt(lines, at, line)
    if (text.trim() !== '' && !COMMENT.test(text)) commands.push({ line: line + at, text, printed: '', awaited: false })
    at = next
  }
  return commands
}

function withPrompts({ line, lines }: Block): Command[] {
  const commands: Command[] = []
  let awaited = false
  for (let at = 0; at < lines.length; ) {
    const unprompted = lines.map((text, index) => (index === at ? text.slice(PROMPT.length) : text))
    const { text, next } = commandAt(unprompted, at, line)
    let end = next
    while (end < lines.length && !lines[end]?.startsWith(PROMPT)) end++
    if (COMMENT.test(text)) awaited = /^\s*# once\b/.test(text)
    else {
      commands.push({ line: line + at, text, printed: lines.slice(next, end).join('\n'), awaited })
      awaited = false
    }
    at = end
  }
  return commands
}

/** The command that begins in a line, with the lines that it goes on in. */
function commandAt(lines: readonly string[], from: number, first: number): { text: string; next: number } {
  for (let next = from + 1; next <= lines.length; next++) {
    const text = lines.slice(from, next).join('\n')
    if (isWhole(text)) return { text, next }
  }
  throw new Error(`the command of line ${first + from} has no end`)
}

/** A quoted text in which nothing ends. */
const QUOTED = /'[^']*'|"[^"\\`$]*"/g
/** Words and variables alone: always a whole command. */
const PLAIN = /^(?!\s*(if|for|while|until|case|select|function)\b)[\w\s.,:=/@%+~?*$-]*$/

function isWhole(text: string): boolean {
  if (PLAIN.test(text.replace(QUOTED, ''))) return true
  return !text.endsWith('\\') && spawnSync('bash', ['-n'], { input: `${text}\n`, stdio: 'pipe' }).status === 0
}
