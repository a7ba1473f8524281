/** A stylesheet, minified, as text: for `adoptedStyleSheets`. */
declare module "*.css" {
  const text: string;
  export default text;
}
