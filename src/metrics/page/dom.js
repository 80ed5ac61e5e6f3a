/** A few lines around the DOM: what is shown changes in place, so that focus, scrolling and selections stay. */

const SVG = "http://www.w3.org/2000/svg"

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string>>} [attributes]
 * @param {ReadonlyArray<Node | string>} [children]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export const element = (tag, attributes = {}, children = []) => {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children)
  return made
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string | number>>} [attributes]
 * @param {string} [text]
 * @returns {SVGElementTagNameMap[Tag]}
 */
export const svg = (tag, attributes = {}, text) => {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  if (text !== undefined) made.textContent = text
  return made
}

/**
 * @param {Element} at
 * @param {string} text
 */
export const setText = (at, text) => {
  if (at.textContent !== text) at.textContent = text
}

/**
 * @param {Element} at
 * @param {string} name
 * @param {string} value
 */
export const setAttribute = (at, name, value) => {
  if (at.getAttribute(name) !== value) at.setAttribute(name, value)
}

/**
 * Brings the children of `parent` to `wanted` with the fewest moves.
 * @param {Element} parent
 * @param {ReadonlyArray<Element>} wanted
 */
export const setChildren = (parent, wanted) => {
  for (const child of [...parent.children]) if (!wanted.includes(child)) child.remove()
  wanted.forEach((child, n) => {
    if (parent.children[n] !== child) parent.insertBefore(child, parent.children[n] ?? null)
  })
}

/**
 * The element of that id in index.html.
 * @param {string} id
 * @returns {HTMLElement}
 */
export const byId = (id) => {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`index.html has no #${id}`)
  return found
}
