/** The view on a page of its own (`tape show NOTEBOOK --html`): no kernel, no network; all it shows stands in the page. */
import { mount } from "../view/mount.tsx";
import { PageDoor } from "./door.ts";

const home = document.getElementById("tape");
if (home) mount(home, new PageDoor(document));
