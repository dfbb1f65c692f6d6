// Files that a person has dropped or chosen, with their paths: [{ file, path }].

/** Those of an input; of a whole folder, the paths begin with its name. */
export function filesOfInput(input) {
  return Array.from(input.files, (file) => ({ file, path: file.webkitRelativePath || file.name }))
}

/** Those of a drop, with everything in dropped folders. The drop must be going on. */
export async function filesOfDrop({ items }) {
  const entries = Array.from(items, (item) => item.webkitGetAsEntry?.()).filter(Boolean)
  const found = await Promise.all(entries.map((entry) => filesOfEntry(entry, entry.name)))
  return found.flat()
}

async function filesOfEntry(entry, path) {
  if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path }]
  const reader = entry.createReader()
  const found = []
  // It returns some entries at a time, and none at the end.
  for (;;) {
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
    if (entries.length === 0) return found
    for (const inner of entries) found.push(...(await filesOfEntry(inner, `${path}/${inner.name}`)))
  }
}
