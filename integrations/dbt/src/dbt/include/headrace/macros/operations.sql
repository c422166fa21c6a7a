{#-- dbt run-operation headrace_refresh --args '{tables: [shop.revenue], full: false}' --#}
{% macro headrace_refresh(tables=none, full=false) %}
  {% for done in adapter.headrace_refresh(headrace_names(tables), full) %}
    {% do log(done.name ~ ': ' ~ done.mode ~ (' +' ~ (done.rows_inserted or 0) ~ ' -' ~ (done.rows_deleted or 0)
        if done.mode != 'NO_CHANGE' else ''), info=true) %}
  {% else %}
    {% do log('Nothing is behind.', info=true) %}
  {% endfor %}
{% endmacro %}


{#-- dbt run-operation headrace_verify; fails where a table differs from its query. --#}
{% macro headrace_verify(tables=none) %}
  {%- set wrong = [] -%}
  {% for done in adapter.headrace_verify(headrace_names(tables)) %}
    {% do log(done.name ~ ': ' ~ ('ok, ' ~ done.rows ~ ' rows' if done.ok
        else done.missing ~ ' rows missing, ' ~ done.unexpected ~ ' unexpected'), info=true) %}
    {% do wrong.append(done.name) if not done.ok %}
  {% endfor %}
  {% if wrong %}
    {% do exceptions.raise_compiler_error('Not equal to their queries: ' ~ wrong | join(', ')) %}
  {% endif %}
{% endmacro %}


{#-- dbt run-operation headrace_drop --args '{table: shop.revenue, cascade: false}' --#}
{% macro headrace_drop(table, cascade=false) %}
  {% for name in adapter.headrace_drop(table, cascade) %}
    {% do log('Dropped ' ~ name, info=true) %}
  {% endfor %}
{% endmacro %}


{% macro headrace_names(tables) %}
  {{ return([tables] if tables is string else tables) }}
{% endmacro %}
