/** Offers a text as a download, which no browser shows as a page. */
export function saveText(name, text) {
  const href = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = href
  link.download = name
  link.click()
  URL.revokeObjectURL(href)
}
